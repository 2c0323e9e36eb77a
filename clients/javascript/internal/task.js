// The task's document and its seats, checked before anything is randomized (docs/reference/wire.md).

import { insist, ShuffleDPError } from "./errors.js";
import { randomizerOf } from "./randomizers.js";

export const SUITE = "X25519-HKDF-SHA256/AES-128-GCM";
export const MESSAGE_BYTES = 29;
export const OVERHEAD_BYTES = 48;
const MOST_SLOTS = 1 << 24;

const AGAIN = "so nothing was sent: take the task's text from whoever made it";

function refuse(what) {
  throw new ShuffleDPError(`task.${what}, ${AGAIN}.`);
}

const isWhole = (number, least) => Number.isSafeInteger(number) && number >= least;

export const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
export const fromHex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));

function keyFrom(text, name) {
  if (typeof text !== "string" || !/^[A-Za-z0-9_-]{43}=$/.test(text)) refuse(`${name} must be 32 bytes in base64url`);
  const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (letter) => letter.charCodeAt(0));
}

/** C(budget + shufflers, shufflers), or Infinity where there would be too many. */
function slotsOf(budget, shufflers) {
  let slots = 1;
  for (let level = 1; level <= shufflers; level++) {
    slots = (slots * (budget + level)) / level;
    if (slots > MOST_SLOTS) return Infinity;
  }
  return slots;
}

/** Which batches each position is in: a function of the routing alone. */
export class Schedule {
  constructor(routing) {
    const { users, budget, shufflers, slot_users: slotUsers } = routing;
    Object.assign(this, { routing, users, slotUsers, short: 0, slots: slotsOf(budget, shufflers) });
    if (routing.counts_everybody) {
      const least = Math.ceil(users / (this.slots - 1));
      const count = Math.ceil(users / least);
      this.slotUsers = Math.ceil(users / count);
      this.short = count * this.slotUsers - users;
      this.slots = count + 1;
    }
  }

  /** How many people sit in the first so many slots. */
  usersBy(slots) {
    return slots * this.slotUsers - Math.min(slots, this.short);
  }

  /** The slot of a position. */
  slotOf(position) {
    const inShort = this.short * (this.slotUsers - 1);
    return position < inShort
      ? Math.floor(position / (this.slotUsers - 1))
      : Math.floor((position + this.short) / this.slotUsers);
  }

  /** Level, first slot and end of every batch over a slot, lowest level first. */
  joined(slot) {
    const found = [];
    let [budget, level, first] = [this.routing.budget, this.routing.shufflers, 0];
    while (budget > 0 && level > 0) {
      const span = slotsOf(budget, level - 1);
      if (slot < first + span) {
        if (first + span < this.slots) found.unshift([level, first, first + span]);
        level--;
      } else {
        first += span;
        budget--;
      }
    }
    const alone = !found.length || found[0][0] > 1;
    if (this.routing.every_slot && alone && slot + 1 < this.slots) found.unshift([1, slot, slot + 1]);
    return found;
  }

  /** The batches of the person at a position, as a seat says them. */
  batchesOf(position) {
    const slot = this.slotOf(position);
    return this.joined(slot).map(([level, first, end]) => {
      const size = this.usersBy(end) - this.usersBy(first);
      const batch = { level, batch_id: `${level}.${first}.${end}`, size, seat: position - this.usersBy(first) };
      return { ...batch, messages: this.routing.messages[size] };
    });
  }
}

/** Whose tokens lead in; undefined where the token for enrol does. */
function issuerIn(routing) {
  const issuer = routing?.issuer;
  const readable = typeof issuer?.name === "string" && typeof issuer.token_key === "string";
  if (issuer !== undefined && (!readable || issuer.token_type !== 2)) refuse("routing.issuer must be of type 2");
  return issuer;
}

/** Of a task and of its routing: earlier clients refuse what they would not understand. */
const versionOf = (routing, cascade) => (routing?.issuer !== undefined ? 4 : cascade ? 2 : 1);

function checkRouting(routing, plan, hops) {
  const version = versionOf(routing, hops.length > 0);
  if (typeof routing !== "object" || routing === null || routing.version !== version) {
    refuse(`routing.version must be ${version}`);
  }
  for (const name of ["users", "budget", "shufflers", "slot_users"]) {
    if (!isWhole(routing[name], 1)) refuse(`routing.${name} must be a whole number`);
  }
  if ((routing.layers ?? 0) !== hops.length || (routing.hop ?? 1) !== 1) refuse("routing.layers must be the hops");
  const length = MESSAGE_BYTES + OVERHEAD_BYTES * (1 + hops.length);
  if (routing.ciphertext_bytes !== length) refuse(`routing.ciphertext_bytes must be ${length}`);
  if (routing.windows) refuse("routing.windows is unknown to this client");
  if (typeof routing.messages !== "object" || routing.messages === null) refuse("routing.messages must be an object");
  if (routing.users !== plan.users) refuse("routing.users must be the plan's");
  const running = plan.protocol === "counter";
  const [budget, shufflers] = running ? [plan.budget, plan.shufflers_used] : [1, 1];
  const everySlot = running && plan.estimator === "combined";
  const everybody = running && plan.counts_everybody === true;
  const slots = slotsOf(routing.budget, routing.shufflers);
  let slotUsers = running ? Math.ceil((plan.users + 1) / slots) : plan.users;
  if (everybody) slotUsers = new Schedule({ ...routing, counts_everybody: true }).slotUsers;
  const fits =
    slots <= MOST_SLOTS &&
    routing.budget === budget &&
    routing.shufflers === shufflers &&
    routing.every_slot === everySlot &&
    (routing.counts_everybody ?? false) === everybody &&
    routing.slot_users === slotUsers;
  if (!fits) refuse("routing must be the plan's");
}

async function idOf(text) {
  const digest = await globalThis.crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return toHex(new Uint8Array(digest));
}

/** A task whose text has this id, with its randomizer. Throws a sentence for any other. */
export async function readTask(text, taskId) {
  insist(typeof taskId === "string" && /^[0-9a-f]{64}$/.test(taskId), "taskId must be 64 hexadecimal digits.");
  insist(typeof text === "string", "task must be the task's text, unchanged.");
  text = text.trim();
  if ((await idOf(text)) !== taskId) refuse("text must have the SHA-256 that taskId says");
  let document;
  try {
    document = JSON.parse(text);
  } catch {
    document = null;
  }
  if (typeof document !== "object" || document === null) refuse("text must be a JSON object");
  const listed = document.hops ?? [];
  const cascade = "hops" in document;
  const version = versionOf(document.routing, cascade);
  if (document.version !== version) refuse(`version must be ${version}`);
  if (document.suite !== SUITE) refuse(`suite must be ${SUITE}`);
  const inOrder = Array.isArray(listed) && listed.every((hop, place) => hop?.hop === place + 1);
  if (!inOrder || (cascade && (listed.length < 2 || listed.length > 3))) refuse("hops must be 2 or 3, in their order");
  const texts = [document.public_key, ...listed.map((hop) => hop.public_key)];
  const keys = texts.map((key, place) => keyFrom(key, place ? `hops[${place}].public_key` : "public_key"));
  if (new Set(texts).size < texts.length) refuse("hops must have different keys");
  const { plan, routing } = document;
  if (typeof plan !== "object" || plan === null || plan.schema !== 1) refuse("plan.schema must be 1");
  if (!isWhole(plan.users, 1)) refuse("plan.users must be a whole number");
  const randomizer = randomizerOf(plan);
  checkRouting(routing, plan, listed);
  return { id: taskId, plan, randomizer, schedule: new Schedule(routing), keys, issuer: issuerIn(routing) };
}

/** A seat that the task has, or a refusal: in a batch that is said to be larger, everybody adds less noise. */
export function checkSeat(task, seat) {
  const words = "the shuffler offers a seat that the task does not have, so nothing was sent";
  const { schedule, randomizer } = task;
  const batches = seat?.batches;
  const readable =
    typeof seat?.seat === "string" && /^[0-9a-f]{32}$/.test(seat.seat) && seat.lease_seconds > 0 && Array.isArray(batches);
  insist(readable, `${words}: it cannot be read.`);
  let position = schedule.users - 1;
  if (batches.length) {
    const first = /^\d+\.(\d{1,11})\.\d+$/.exec(batches[0]?.batch_id)?.[1];
    position = first === undefined ? -1 : schedule.usersBy(Number(first)) + batches[0].seat;
  }
  const isPosition = isWhole(position, 0) && position < schedule.users;
  const expected = isPosition ? schedule.batchesOf(position) : [];
  const names = ["level", "batch_id", "size", "seat", "messages"];
  const same =
    isPosition &&
    expected.length === batches.length &&
    expected.every((batch, place) => names.every((name) => batch[name] === batches[place]?.[name]));
  insist(same, `${words}: it serves another task under this id, or is not to be trusted.`);
  for (const { size, messages } of expected) {
    insist(messages === randomizer.messages(size), `${words}: its plan and its routing disagree.`);
  }
  return { id: seat.seat, batches: expected };
}
