// The task's document and its seats, checked before anything is randomized (docs/reference/wire.md).

import { insist, ShuffleDPError } from "./errors.js";
import { randomizerOf } from "./randomizers.js";
import { isWhole, slotOfPlace } from "./values.js";

export const SUITE = "X25519-HKDF-SHA256/AES-128-GCM";
export const MESSAGE_BYTES = 29;
export const OVERHEAD_BYTES = 48;
const MOST_SLOTS = 1 << 24;
const MOST_SHUFFLERS = 64;
/** A longer text is read by nobody: a task of a million people has a few thousand letters. */
const LONGEST_TEXT = 1 << 20;

const AGAIN = "so nothing was sent: take the task's text from whoever made it";

function refuse(what) {
  throw new ShuffleDPError(`task.${what}, ${AGAIN}.`);
}

export const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
export const fromHex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));

export function keyFrom(text, name) {
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
    if (routing.windows) {
      // A window closes with every slot and holds the last ones, as many as there are shufflers.
      this.short = budget * slotUsers - users;
      this.slots = budget + 1;
    } else if (routing.counts_everybody) {
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
    return slotOfPlace(position, this.slotUsers, this.short);
  }

  /** Level, first slot and end of every batch over a slot, lowest level first. */
  joined(slot) {
    if (this.routing.windows) return this.#windows(slot);
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

  #windows(slot) {
    const { budget, shufflers } = this.routing;
    const last = Math.min(slot + shufflers, budget);
    const ends = Array.from({ length: last - slot }, (_, place) => slot + 1 + place);
    const found = ends.map((end) => [((end - 1) % shufflers) + 1, Math.max(0, end - shufflers), end]);
    return found.sort(([one], [other]) => one - other);
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

/** What a plan says of its batches. */
function layoutOf(plan, routing) {
  const { users } = plan;
  if (plan.protocol !== "counter") return { budget: 1, shufflers: 1, slotUsers: users };
  const shufflers = plan.shufflers_used;
  if (plan.method === "carried") {
    const budget = plan.noise?.slots;
    return { budget, shufflers, slotUsers: Math.ceil(users / budget), everybody: true, windows: true };
  }
  const everybody = plan.counts_everybody === true;
  const slotUsers = everybody
    ? new Schedule({ ...routing, counts_everybody: true }).slotUsers
    : Math.ceil((users + 1) / slotsOf(plan.budget, shufflers));
  return { budget: plan.budget, shufflers, slotUsers, everybody, everySlot: plan.estimator === "combined" };
}

/** Whose tokens lead in; undefined where the token for enrol does. */
function issuerIn(routing) {
  const issuer = routing?.issuer;
  const readable = typeof issuer?.name === "string" && typeof issuer.token_key === "string";
  if (issuer !== undefined && (!readable || issuer.token_type !== 2)) refuse("routing.issuer must be of type 2");
  return issuer;
}

/** Of a task and of its routing, which says no last days: earlier clients refuse what they would not understand. */
const versionOf = (routing, cascade, expires = false) => (routing?.issuer !== undefined ? 4 : expires ? 3 : cascade ? 2 : 1);

/** Last days of keys by their texts; undefined where none expires. */
function expiriesOf(document, texts) {
  if (!("expires" in document)) return undefined;
  const { expires } = document;
  const isDay = (day) => typeof day === "string" && /^\d{4}-\d\d-\d\d$/.test(day) && !Number.isNaN(Date.parse(day));
  const listed = typeof expires === "object" && expires !== null && !Array.isArray(expires) ? Object.entries(expires) : [];
  if (!listed.length || !listed.every(([key, day]) => texts.includes(key) && isDay(day))) {
    refuse("expires must be last days of its keys");
  }
  return expires;
}

/** Refuse to seal anything to a key whose last day, in UTC, is over; what was sealed before may still be sent. */
export function checkNotExpired({ expires = {} }) {
  const today = new Date().toISOString().slice(0, 10);
  for (const [key, day] of Object.entries(expires)) {
    const way = "ask the operator for the task with a new key";
    insist(day >= today, `the key ${key} has expired, its last day was ${day}, so nothing was sent: ${way}.`);
  }
}

/** Refuse a routing that is not the one of the plan. */
export function checkRouting(routing, plan, hops) {
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
  if (typeof routing.messages !== "object" || routing.messages === null) refuse("routing.messages must be an object");
  if (routing.users !== plan.users) refuse("routing.users must be the plan's");
  const { windows = false, everybody = false, everySlot = false, ...own } = layoutOf(plan, routing);
  const slots = windows ? routing.budget : slotsOf(routing.budget, routing.shufflers);
  const fits =
    slots <= MOST_SLOTS &&
    routing.shufflers <= MOST_SHUFFLERS &&
    routing.budget === own.budget &&
    routing.shufflers === own.shufflers &&
    routing.every_slot === everySlot &&
    (routing.counts_everybody ?? false) === everybody &&
    (routing.windows ?? false) === windows &&
    routing.slot_users === own.slotUsers;
  if (!fits) refuse("routing must be the plan's");
}

async function idOf(text) {
  const digest = await globalThis.crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return toHex(new Uint8Array(digest));
}

/** The JSON object of a text that has this id; `what` names it in refusals. */
export async function readDocument(text, id, what) {
  insist(typeof id === "string" && /^[0-9a-f]{64}$/.test(id), `${what}Id must be 64 hexadecimal digits.`);
  insist(typeof text === "string", `${what} must be the ${what}'s text, unchanged.`);
  insist(text.length <= LONGEST_TEXT, `${what} must be a text of at most ${LONGEST_TEXT} letters, so nothing was sent.`);
  text = text.trim();
  if ((await idOf(text)) !== id) refuse(`text must have the SHA-256 that ${what}Id says`);
  let document;
  try {
    document = JSON.parse(text);
  } catch {
    document = null;
  }
  if (typeof document !== "object" || document === null || Array.isArray(document)) refuse("text must be a JSON object");
  return document;
}

/** The keys that messages are sealed to, the analyzer's first, and the hops, of a task or a campaign. */
export function keysOf(document) {
  const listed = document.hops ?? [];
  const cascade = "hops" in document;
  const version = versionOf(document.routing, cascade, "expires" in document);
  if (document.version !== version) refuse(`version must be ${version}`);
  if (document.suite !== SUITE) refuse(`suite must be ${SUITE}`);
  const inOrder = Array.isArray(listed) && listed.every((hop, place) => hop?.hop === place + 1);
  if (!inOrder || (cascade && (listed.length < 2 || listed.length > 3))) refuse("hops must be 2 or 3, in their order");
  const texts = [document.public_key, ...listed.map((hop) => hop.public_key)];
  const keys = texts.map((key, place) => keyFrom(key, place ? `hops[${place}].public_key` : "public_key"));
  if (new Set(texts).size < texts.length) refuse("hops must have different keys");
  return { keys, hops: listed, expires: expiriesOf(document, texts) };
}

/** A plan and its routing, checked: what is served under an id, with a randomizer and a schedule. */
export function served(id, plan, routing, { keys, hops, expires }) {
  if (typeof plan !== "object" || plan === null || plan.schema !== 1) refuse("plan.schema must be 1");
  if (!isWhole(plan.users, 1)) refuse("plan.users must be a whole number");
  const randomizer = randomizerOf(plan, routing ?? undefined);
  checkRouting(routing, plan, hops);
  return { id, plan, randomizer, schedule: new Schedule(routing), keys, expires, issuer: issuerIn(routing) };
}

/** A task whose text has this id, with its randomizer. Throws a sentence for any other. */
export async function readTask(text, taskId) {
  const document = await readDocument(text, taskId, "task");
  return served(taskId, document.plan, document.routing, keysOf(document));
}

/** A seat that the task has, or a refusal: in a batch that is said to be larger, everybody adds less noise. */
export function checkSeat(task, seat) {
  const words = "the shuffler offers a seat that the task does not have, so nothing was sent";
  const { schedule, randomizer, slots } = task;
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
  const slot = schedule.slotOf(position);
  const isOpen = slots === undefined || (slots[0] <= slot && slot < slots[1]);
  insist(isOpen, `${words}: it is in a slot that may not answer by this model.`);
  for (const { size, messages } of expected) {
    insist(messages === randomizer.messages(size), `${words}: its plan and its routing disagree.`);
  }
  return { id: seat.seat, batches: expected, position, slot };
}
