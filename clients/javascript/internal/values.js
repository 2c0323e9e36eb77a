// What people's values are, and how they become whole numbers: the checks of a plan's fields, and of values.

import { rational, roundRandomly } from "./bits.js";
import { insist } from "./errors.js";

export const MOST_MESSAGES = 1 << 20;

export const isWhole = (number, least, most = Number.MAX_SAFE_INTEGER) =>
  Number.isSafeInteger(number) && number >= least && number <= most;

/** A field of the plan, or a sentence that says what it must be. */
export function field(holds, name, words) {
  insist(holds, `plan.${name} must be ${words}, so nothing was sent: take the task's text from whoever made it.`);
}

/** The closest fraction with a denominator of at most 10^9: what a person means by 0.9 or by 1/3. */
function meant(top, bottom) {
  const most = 10n ** 9n;
  if (bottom <= most) return [top, bottom];
  let [p0, q0, p1, q1, n, d] = [0n, 1n, 1n, 0n, top, bottom];
  for (;;) {
    const a = n / d;
    if (q0 + a * q1 > most) break;
    [p0, q0, p1, q1, n, d] = [p1, q1, p0 + a * p1, q0 + a * q1, d, n - a * d];
  }
  const k = (most - q0) / q1;
  const [p2, q2] = [p0 + k * p1, q0 + k * q1];
  return 2n * d * (q0 + k * q1) <= bottom ? [p1, q1] : [p2, q2];
}

/** How many of so many people are counted on to follow the protocol. */
export function honestUsers(users, fraction) {
  if (fraction === 1) return users;
  const exact = rational(fraction);
  const [p, q] = meant(...exact);
  const [top, bottom] = Number(p) / Number(q) === fraction ? [p, q] : exact;
  return Math.max(1, Number((top * BigInt(users)) / bottom));
}

export const plain = (payloads) => payloads.map((payload) => ({ label: 0, payload }));

export function bit(value) {
  const number = typeof value === "boolean" ? Number(value) : value;
  insist(number === 0 || number === 1, `value must be 0, 1, true or false, got ${String(value)}.`);
  return number;
}

export function inRange(value, low, high) {
  const fits = typeof value === "number" && value >= low && value <= high;
  insist(fits, `value must be a number from ${low} to ${high}, got ${String(value)}: clip it first.`);
  return value;
}

/** A number in [low, high] as steps of the grid: once for all batches. */
export function steps(bits, value, grid, low, high) {
  const scaled = (value - low) * (grid / (high - low));
  return roundRandomly(bits, [Math.min(Math.max(scaled, 0), grid)])[0];
}

const DAY = 86_400_000;

/** The number of a day in ISO form, or NaN. */
function dayOf(text) {
  const time = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : NaN;
  // February has no 30th, whatever a parser makes of it.
  return Number.isFinite(time) && new Date(time).toISOString().startsWith(text) ? time / DAY : NaN;
}

/** People's categories as numbers from 0, by how a plan lists them. */
const LISTED = {
  integers: ({ low, high }) => {
    field(isWhole(high - low, 1), "categories", "two whole numbers or more");
    const encode = (value) => {
      const fits = Number.isInteger(value) && value >= low && value <= high;
      insist(fits, `value must be a whole number from ${low} to ${high}, got ${String(value)}.`);
      return value - low;
    };
    return { size: high - low + 1, encode };
  },
  dates: ({ first, last }) => {
    const [from, to] = [dayOf(first), dayOf(last)];
    field(isWhole(to - from, 1), "categories", "two days or more");
    const encode = (value) => {
      const day = dayOf(String(value));
      insist(day >= from && day <= to, `value must be a day from ${first} to ${last}, got ${String(value)}.`);
      return day - from;
    };
    return { size: to - from + 1, encode };
  },
  hashed: ({ cells, salt }) => {
    field(isWhole(cells, 2, 2 ** 31) && typeof salt === "string", "categories", "two cells or more, and a salt");
    const prefix = `${[...salt].length}:${salt}`;
    const encode = async (value) => {
      insist(typeof value === "string", "value must be a text.");
      const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(prefix + value));
      const view = new DataView(digest);
      const number = (view.getBigUint64(0) << 64n) | view.getBigUint64(8);
      return Number((number * BigInt(cells)) >> 128n);
    };
    return { size: cells, encode };
  },
  names: ({ names, other }) => {
    const places = new Map(Array.isArray(names) ? names.map((name, place) => [name, place]) : []);
    field(places.size === names?.length && places.size >= 2, "categories", "two different names or more");
    const encode = (value) => {
      const place = places.get(String(value)) ?? places.get(other);
      insist(place !== undefined, `value must be one of ${names.length} categories, got ${String(value)}.`);
      return place;
    };
    return { size: places.size, encode };
  },
};

/** People's categories: how many there are, and the number of a value; a promise of it where values are hashed. */
export function categories(document) {
  const known = Object.keys(LISTED).join(", ");
  field(Object.hasOwn(LISTED, document?.kind), "categories.kind", `one of ${known} for this client`);
  return LISTED[document.kind](document);
}

export const isNumber = (number, above, most) => typeof number === "number" && number > above && number <= most;

/** A row of numbers that is no longer than the radius; what it holds is the person's, and is not shown. */
export function inBall(value, dimension, radius) {
  const row = Array.isArray(value) || ArrayBuffer.isView(value) ? Array.from(value) : [];
  const fits = row.length === dimension && row.every((each) => typeof each === "number" && Number.isFinite(each));
  insist(fits, `value must be ${dimension} finite numbers: pass a row of them.`);
  const length = Math.sqrt(row.reduce((sum, each) => sum + each * each, 0));
  insist(length <= radius * (1 + 1e-9), `value must be no longer than ${radius}: shorten it first.`);
  return row;
}

/** What a running sum adds up: how a value is read, and its steps in every coordinate, from `lowest` on. */
const SUMMED = {
  bits: () => ({ encode: bit, length: 1, coordinates: 1, steps: (_, value) => [value] }),
  reals: ({ grid, low = 0, high = 1 }) => ({
    encode: (value) => inRange(value, low, high),
    length: grid,
    coordinates: 1,
    steps: (bits, value) => [steps(bits, value, grid, low, high)],
  }),
  categories: ({ count, named }) => ({
    encode: categories(named ?? { kind: "integers", low: 0, high: count - 1 }).encode,
    length: 1,
    coordinates: count,
    steps: (_, code) => Array.from({ length: count }, (_, place) => Number(place === code)),
  }),
  vectors: ({ dimension, radius, grid }) => {
    field(isNumber(radius, 0, Number.MAX_VALUE), "domain.radius", "a number above 0");
    // One step is radius/grid; floats may be longer than the radius by a hair.
    const scale = 1 / (radius / grid);
    return {
      encode: (value) => inBall(value, dimension, radius),
      length: 2 * grid,
      lowest: -grid,
      coordinates: dimension,
      steps: (bits, row) => roundRandomly(bits, row.map((each) => Math.min(Math.max(each * scale, -grid), grid))),
    };
  },
};

/** The domain of a running sum's plan. */
export function summed(domain) {
  const kind = domain?.kind;
  field(Object.hasOwn(SUMMED, kind), "domain.kind", `one of ${Object.keys(SUMMED).join(", ")} for this client`);
  const found = { lowest: 0, ...SUMMED[kind](domain) };
  const fits = isWhole(found.length, 1, 2 ** 31) && isWhole(found.coordinates, 1, MOST_MESSAGES);
  field(fits, "domain", "not too large for this client");
  return found;
}

/** A number as so many ones among `length` bits, and coins beside them, dealt out by seat. */
export function unary(number, length, dealt, label) {
  const ones = Array.from({ length }, (_, place) => (place < number ? 1 : 0));
  return [...ones, ...dealt].map((payload) => ({ label, payload }));
}

/** The slot of a place, where slots have so many people and the first `short` of them one less. */
export function slotOfPlace(place, slotUsers, short) {
  const inShort = short * (slotUsers - 1);
  return place < inShort ? Math.floor(place / (slotUsers - 1)) : Math.floor((place + short) / slotUsers);
}
