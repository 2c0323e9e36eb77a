// What a device sends for its value, by method. Every law is the one of docs/reference/wire.md, drawn exactly.

import { bernoulli, coins, fairCoins, rational, uniformBelow, uniformBits } from "./bits.js";
import { carried } from "./carried.js";
import { ShuffleDPError } from "./errors.js";
import { counterCoins, counterLaplace, counterSkellam } from "./running.js";
import { poisson, negativeBinomial, SparseNegativeBinomial, truncatedLaplace } from "./tables.js";
import {
  bit,
  categories,
  field,
  honestUsers,
  inRange,
  isNumber,
  isWhole,
  MOST_MESSAGES,
  plain,
  steps,
  unary,
} from "./values.js";

const poissonBits = (plan, users) => {
  const { rate, most_noise_bits: most } = plan.noise;
  field(isNumber(rate, 0, Number.MAX_VALUE), "noise.rate", "a number above 0");
  field(isWhole(most, 0, MOST_MESSAGES), "noise.most_noise_bits", "a whole number");
  const [top, bottom] = rational(rate);
  const honest = honestUsers(users, plan.honest_fraction);
  field(rate / honest <= MOST_MESSAGES, "noise.rate", `at most ${MOST_MESSAGES} for each person`);
  const law = poisson(top, bottom * BigInt(honest));
  return {
    encode: bit,
    messages: () => 1 + most,
    randomize: (bits, value) => {
      const noise = Math.min(law.sample(bits, 1)[0], most);
      const payloads = fairCoins(bits, noise + 1);
      payloads[0] = value;
      return plain(payloads);
    },
  };
};

const sumOfBits = (encode, prepare, length, each, probability) => {
  field(isNumber(probability, 0, 0.5), "noise.probability", "in (0, 1/2]");
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

const pure = (plan) => {
  const { bits_per_user: length, random_probability: probability, decay } = plan.noise;
  field(isWhole(length, 3, MOST_MESSAGES) && length % 2 === 1, "noise.bits_per_user", "an odd number from 3 on");
  field(isNumber(probability, 0, 1) && probability < 1, "noise.random_probability", "in (0, 1)");
  field(isNumber(decay, 0, 1) && decay < 1, "noise.decay", "in (0, 1)");
  const law = truncatedLaplace(length, decay);
  return {
    encode: bit,
    messages: () => length,
    randomize: (bits, value) => {
      // Both are drawn, whichever is sent: how long a device takes says nothing.
      const [isRandom] = bernoulli(bits, probability, 1);
      const [drawn] = law.sample(bits, 1);
      return unary(isRandom ? drawn : (length - 1) / 2 + value, length, [], 0);
    },
  };
};

const response = (plan) => {
  const { random_probability: probability } = plan.noise;
  field(isNumber(probability, 0, 1), "noise.random_probability", "in (0, 1]");
  return {
    encode: bit,
    messages: () => 1,
    randomize: (bits, value) => plain([value ^ bernoulli(bits, probability / 2, 1)[0]]),
  };
};

/** Ratio, shape and ratio of cancelling pairs, and their caps: of one count, or of every category. */
function flood(plan, most) {
  const { ratio, flood_shape: shape, flood_ratio: floodRatio, most_noise: mostNoise } = plan.noise;
  for (const [name, each] of Object.entries({ ratio, flood_ratio: floodRatio })) {
    field(isNumber(each, 0, 1) && each < 1, `noise.${name}`, "in (0, 1)");
  }
  field(isNumber(shape, 0, 1e12), "noise.flood_shape", "a number above 0");
  for (const each of [mostNoise, plan.noise[most]]) field(isWhole(each, 0, MOST_MESSAGES), "noise", "whole numbers");
  const honest = BigInt(honestUsers(plan.users, plan.honest_fraction));
  const [top, bottom] = rational(shape);
  return { ratio, floodRatio, mostNoise, mostFlood: plan.noise[most], noise: [1n, honest], pairs: [top, bottom * honest] };
}

const correlated = (plan) => {
  const { ratio, floodRatio, mostNoise, mostFlood, noise, pairs } = flood(plan, "most_flood");
  const [own, others] = [negativeBinomial(noise, ratio), negativeBinomial(pairs, floodRatio)];
  return {
    encode: bit,
    messages: () => 1 + 2 * mostNoise + 2 * mostFlood,
    randomize: (bits, value) => {
      const plus = Math.min(own.sample(bits, 1)[0], mostNoise);
      const minus = Math.min(own.sample(bits, 1)[0], mostNoise);
      const both = Math.min(others.sample(bits, 1)[0], mostFlood);
      return plain([...Array(value + plus + both).fill(1), ...Array(minus + both).fill(0)]);
    },
  };
};

/** Events of a sparse law: cells and sizes, of which the last are made smaller where there are more than `most`. */
function events(bits, law, most) {
  const [count] = law.events.sample(bits, 1);
  const cells = uniformBelow(bits, law.cells, count);
  let left = most;
  return law.sizes.sample(bits, count).map((size, place) => {
    const kept = Math.min(size, left);
    left -= kept;
    return [cells[place], kept];
  });
}

const correlatedHistogram = (plan) => {
  const { size, encode } = categories(plan.categories);
  const { ratio, floodRatio, mostNoise, mostFlood, noise, pairs } = flood(plan, "most_pairs");
  const own = new SparseNegativeBinomial(noise, ratio, 2 * size);
  const others = new SparseNegativeBinomial(pairs, floodRatio, size);
  return {
    encode,
    messages: () => 1 + mostNoise + 2 * mostFlood,
    randomize: (bits, code) => {
      const singles = events(bits, own, mostNoise);
      const both = events(bits, others, mostFlood);
      // Twice the category, and one more for a plus: a run of equal messages each.
      const signed = (sign) => both.map(([category, many]) => [2 * category + sign, many]);
      const runs = [[2 * code + 1, 1], ...singles, ...signed(1), ...signed(0)];
      return plain(runs.flatMap(([payload, many]) => Array(many).fill(payload)));
    },
  };
};

const boundedBits = (plan) => {
  const { low, high, noise } = plan;
  field(Number.isFinite(high - low) && low < high, "high", "larger than plan.low");
  field(isWhole(noise.grid, 1, 2 ** 30), "noise.grid", "a whole number");
  const encode = (value) => inRange(value, low, high);
  const prepare = (bits, value) => steps(bits, value, noise.grid, low, high);
  return sumOfBits(encode, prepare, noise.grid, noise.coins, noise.probability);
};

/** A histogram whose people send their own message and as many random ones as their coins say. */
const blanket = (plan, made) => {
  const { size, encode } = categories(plan.categories);
  const { coins: each, probability } = plan.noise;
  field(isWhole(each, 1, MOST_MESSAGES), "noise.coins", "a whole number");
  field(isNumber(probability, 0, 1), "noise.probability", "in (0, 1]");
  const draw = made(size);
  return {
    encode,
    messages: () => 1 + each,
    randomize: (bits, code) =>
      draw(bits, code, 1 + bernoulli(bits, probability, each).reduce((sum, coin) => sum + coin, 0)),
  };
};

const decoys = (plan) =>
  blanket(plan, (size) => (bits, code, count) => {
    const payloads = uniformBelow(bits, size, count);
    payloads[0] = code;
    return plain(payloads);
  });

function nextPrime(number) {
  for (; ; number++) {
    let divisor = 2;
    while (divisor * divisor <= number && number % divisor) divisor++;
    if (divisor * divisor > number) return number;
  }
}

const buckets = (plan) =>
  blanket(plan, (size) => {
    const { buckets: many } = plan.noise;
    field(isWhole(many, 2, size - 1), "noise.buckets", "fewer than the categories");
    const prime = nextPrime(size);
    const q = BigInt(prime);
    return (bits, code, count) => {
      const a = uniformBelow(bits, prime - 1, count).map((drawn) => BigInt(drawn) + 1n);
      const v = uniformBelow(bits, prime, count).map(BigInt);
      const w = uniformBelow(bits, many, count);
      const [y] = uniformBelow(bits, prime, 1);
      v[0] = (BigInt(code) + q - ((a[0] * BigInt(y)) % q)) % q;
      w[0] = y % many;
      return a.map((each, place) => ({ label: w[place], payload: each * q + v[place] }));
    };
  });

const hadamard = (plan) =>
  blanket(plan, (size) => {
    const { signs } = plan.noise;
    field(isWhole(signs, 1, 31) && 2 ** signs < size, "noise.signs", "so few that sign vectors are fewer than categories");
    const indexBits = 32 - Math.clz32(size - 1);
    const mask = (1n << BigInt(indexBits)) - 1n;
    const isOdd = (number) => number.toString(2).replaceAll("0", "").length % 2;
    return (bits, code, count) => {
      const seeds = uniformBits(bits, indexBits + signs - 1, count);
      const labels = uniformBits(bits, signs, count).map(Number);
      labels[0] = 0;
      for (let row = 0; row < signs; row++) {
        labels[0] += isOdd((seeds[0] >> BigInt(row)) & mask & BigInt(code)) * 2 ** row;
      }
      return seeds.map((payload, place) => ({ label: labels[place], payload }));
    };
  });

const METHODS = {
  "binary-sum/poisson-bits": poissonBits,
  "binary-sum/coins": binaryCoins,
  "binary-sum/pure": pure,
  "binary-sum/rr": response,
  "binary-sum/correlated": correlated,
  "bounded-sum/bits": boundedBits,
  "histogram/decoys": decoys,
  "histogram/buckets": buckets,
  "histogram/hadamard": hadamard,
  "histogram/correlated": correlatedHistogram,
  "counter/coins": counterCoins,
  "counter/laplace": counterLaplace,
  "counter/skellam": counterSkellam,
  "counter/carried": carried,
};

/** The randomizer of a plan, or a refusal where this client does not know its method. */
export function randomizerOf(plan, routing = {}) {
  // A running sum that names no method is named by its noise.
  const name = `${plan.protocol}/${plan.method ?? plan.noise?.family}`;
  if (!Object.hasOwn(METHODS, name)) {
    const known = Object.keys(METHODS).join(", ");
    throw new ShuffleDPError(`plan.method ${name} is unknown to this client, so nothing was sent: it knows ${known}.`);
  }
  field(typeof plan.noise === "object" && plan.noise !== null, "noise", "an object");
  const fraction = plan.honest_fraction;
  field(typeof fraction === "number" && fraction > 0 && fraction <= 1, "honest_fraction", "in (0, 1]");
  return { prepare: (_, value) => value, ...METHODS[name](plan, plan.users, routing) };
}
