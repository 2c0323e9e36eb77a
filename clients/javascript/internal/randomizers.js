// What a device sends for its value, by method. Every law is the one of docs/reference/wire.md, drawn exactly.

import { Poisson, bernoulli, coins, fairCoins, rational, roundRandomly, uniformBelow } from "./bits.js";
import { insist, ShuffleDPError } from "./errors.js";

const MOST_MESSAGES = 1 << 20;

const isWhole = (number, least, most = Number.MAX_SAFE_INTEGER) =>
  Number.isSafeInteger(number) && number >= least && number <= most;

/** A field of the plan, or a sentence that says what it must be. */
function field(holds, name, words) {
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

const plain = (payloads) => payloads.map((payload) => ({ label: 0, payload }));

function bit(value) {
  const number = typeof value === "boolean" ? Number(value) : value;
  insist(number === 0 || number === 1, `value must be 0, 1, true or false, got ${String(value)}.`);
  return number;
}

function inRange(value, low, high) {
  const fits = typeof value === "number" && value >= low && value <= high;
  insist(fits, `value must be a number from ${low} to ${high}, got ${String(value)}: clip it first.`);
  return value;
}

/** A number in [low, high] as steps of the grid: once for all batches. */
function steps(bits, value, grid, low, high) {
  const scaled = (value - low) * (grid / (high - low));
  return roundRandomly(bits, Math.min(Math.max(scaled, 0), grid));
}

/** People's categories as numbers from 0. */
function categories(document) {
  const known = document?.kind;
  if (known === "integers" && isWhole(document.high - document.low, 1)) {
    const { low, high } = document;
    const encode = (value) => {
      const fits = Number.isInteger(value) && value >= low && value <= high;
      insist(fits, `value must be a whole number from ${low} to ${high}, got ${String(value)}.`);
      return value - low;
    };
    return { size: high - low + 1, encode };
  }
  field(known === "names" && Array.isArray(document.names), "categories", "names or whole numbers for this client");
  const places = new Map(document.names.map((name, place) => [name, place]));
  field(places.size === document.names.length && places.size >= 2, "categories", "two different names or more");
  const encode = (value) => {
    const place = places.get(String(value)) ?? places.get(document.other);
    insist(place !== undefined, `value must be one of ${document.names.length} categories, got ${String(value)}.`);
    return place;
  };
  return { size: places.size, encode };
}

/** A number as so many ones among `length` bits, and coins beside them, dealt out by seat. */
function unary(number, length, dealt, label) {
  const ones = Array.from({ length }, (_, place) => (place < number ? 1 : 0));
  return [...ones, ...dealt].map((payload) => ({ label, payload }));
}

const poissonBits = (plan, users) => {
  const { rate, most_noise_bits: most } = plan.noise;
  field(typeof rate === "number" && rate > 0 && rate < Infinity, "noise.rate", "a number above 0");
  field(isWhole(most, 0, MOST_MESSAGES), "noise.most_noise_bits", "a whole number");
  const [top, bottom] = rational(rate);
  const honest = honestUsers(users, plan.honest_fraction);
  field(rate / honest <= MOST_MESSAGES, "noise.rate", `at most ${MOST_MESSAGES} for each person`);
  const law = new Poisson(top, bottom * BigInt(honest));
  return {
    encode: bit,
    messages: () => 1 + most,
    randomize: (bits, value) => {
      const noise = Math.min(law.sample(bits), most);
      const payloads = fairCoins(bits, noise + 1);
      payloads[0] = value;
      return plain(payloads);
    },
  };
};

const sumOfBits = (encode, prepare, length, each, probability) => {
  field(typeof probability === "number" && probability > 0 && probability <= 0.5, "noise.probability", "in (0, 1/2]");
  field(isWhole(each, 1, MOST_MESSAGES), "noise", "a whole number of coins");
  return {
    encode,
    prepare,
    messages: () => length + each,
    randomize: (bits, number) => unary(number, length, coins(bits, probability, each), 0),
  };
};

const binaryCoins = (plan) =>
  sumOfBits(bit, (_, value) => value, 1, plan.noise.bits_per_user, plan.noise.probability);

const boundedBits = (plan) => {
  const { low, high, noise } = plan;
  field(Number.isFinite(high - low) && low < high, "high", "larger than plan.low");
  field(isWhole(noise.grid, 1, 2 ** 30), "noise.grid", "a whole number");
  const encode = (value) => inRange(value, low, high);
  const prepare = (bits, value) => steps(bits, value, noise.grid, low, high);
  return sumOfBits(encode, prepare, noise.grid, noise.coins, noise.probability);
};

const decoys = (plan) => {
  const { size, encode } = categories(plan.categories);
  const { coins: each, probability } = plan.noise;
  field(isWhole(each, 1, MOST_MESSAGES), "noise.coins", "a whole number");
  field(typeof probability === "number" && probability > 0 && probability <= 1, "noise.probability", "in (0, 1]");
  return {
    encode,
    messages: () => 1 + each,
    randomize: (bits, code) => {
      const extra = bernoulli(bits, probability, each).reduce((sum, coin) => sum + coin, 0);
      const payloads = uniformBelow(bits, size, 1 + extra);
      payloads[0] = code;
      return plain(payloads);
    },
  };
};

/** What a running sum adds up: how a value is read, and its steps in every coordinate. */
const SUMMED = {
  bits: () => ({ encode: bit, length: 1, coordinates: 1, prepare: (_, value) => [value] }),
  reals: ({ grid, low = 0, high = 1 }) => ({
    encode: (value) => inRange(value, low, high),
    length: grid,
    coordinates: 1,
    prepare: (bits, value) => [steps(bits, value, grid, low, high)],
  }),
  categories: ({ count, named }) => ({
    encode: categories(named ?? { kind: "integers", low: 0, high: count - 1 }).encode,
    length: 1,
    coordinates: count,
    prepare: (_, code) => Array.from({ length: count }, (_, place) => Number(place === code)),
  }),
};

const counterCoins = (plan) => {
  const tossed = plan.noise.coins;
  field(isWhole(tossed, 2) && tossed % 2 === 0, "noise.coins", "an even number");
  const kind = plan.domain?.kind;
  field(Object.hasOwn(SUMMED, kind), "domain.kind", `one of ${Object.keys(SUMMED).join(", ")} for this client`);
  const { encode, length, coordinates, prepare } = SUMMED[kind](plan.domain);
  field(isWhole(length, 1, MOST_MESSAGES) && isWhole(coordinates, 1, MOST_MESSAGES), "domain", "not too large");
  /** Coins that a batch deals out: of any people that are counted on, enough are tossed. */
  const dealt = (size) => {
    const honest = honestUsers(size, plan.honest_fraction);
    const total = honest === size ? tossed : size * Math.ceil(tossed / honest);
    return total + (total % 2);
  };
  const upTo = (seats, size) => Number((BigInt(seats) * BigInt(dealt(size))) / BigInt(size));
  return {
    encode,
    prepare,
    messages: (size) => coordinates * (length + Math.ceil(dealt(size) / size)),
    randomize: (bits, numbers, size, seat) => {
      const own = upTo(seat + 1, size) - upTo(seat, size);
      const noise = fairCoins(bits, coordinates * own);
      return numbers.flatMap((number, label) =>
        unary(number, length, noise.slice(label * own, (label + 1) * own), label),
      );
    },
  };
};

const METHODS = {
  "binary-sum/poisson-bits": poissonBits,
  "binary-sum/coins": binaryCoins,
  "bounded-sum/bits": boundedBits,
  "histogram/decoys": decoys,
  "counter/coins": counterCoins,
};

/** The randomizer of a plan, or a refusal where this client does not know its method. */
export function randomizerOf(plan) {
  // A running sum that names no method is named by its noise.
  const name = `${plan.protocol}/${plan.method ?? plan.noise?.family}`;
  if (!Object.hasOwn(METHODS, name)) {
    const known = Object.keys(METHODS).join(", ");
    throw new ShuffleDPError(`plan.method ${name} is unknown to this client, so nothing was sent: it knows ${known}.`);
  }
  field(typeof plan.noise === "object" && plan.noise !== null, "noise", "an object");
  const fraction = plan.honest_fraction;
  field(typeof fraction === "number" && fraction > 0 && fraction <= 1, "honest_fraction", "in (0, 1]");
  return { prepare: (_, value) => value, ...METHODS[name](plan, plan.users) };
}
