// Counts and sums of one round: what a device sends for 0 or 1, or for a number.

import { bernoulli, coins, fairCoins, rational } from "./bits.js";
import { negativeBinomial, poisson, truncatedLaplace } from "./tables.js";
import { bit, field, honestUsers, inRange, isNumber, isWhole, MOST_MESSAGES, plain, steps, unary } from "./values.js";

export const poissonBits = (plan, users) => {
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

export const binaryCoins = (plan) =>
  sumOfBits(bit, (_, value) => value, 1, plan.noise.bits_per_user, plan.noise.probability);

export const pure = (plan) => {
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

export const response = (plan) => {
  const { random_probability: probability } = plan.noise;
  field(isNumber(probability, 0, 1), "noise.random_probability", "in (0, 1]");
  return {
    encode: bit,
    messages: () => 1,
    randomize: (bits, value) => plain([value ^ bernoulli(bits, probability / 2, 1)[0]]),
  };
};

export const zsum = (plan) => {
  const { silence } = plan.noise;
  field(isNumber(silence, 0, 0.5), "noise.silence", "in (0, 1/2]");
  return {
    encode: bit,
    messages: () => 2,
    randomize: (bits, value) => plain(Array(value + 1 - bernoulli(bits, silence, 1)[0]).fill(1)),
  };
};

/** Ratio, shape and ratio of cancelling pairs, and their caps: of one count, or of every category. */
export function flood(plan, most) {
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

export const correlated = (plan) => {
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

export const boundedBits = (plan) => {
  const { low, high, noise } = plan;
  field(Number.isFinite(high - low) && low < high, "high", "larger than plan.low");
  field(isWhole(noise.grid, 1, 2 ** 30), "noise.grid", "a whole number");
  const encode = (value) => inRange(value, low, high);
  const prepare = (bits, value) => steps(bits, value, noise.grid, low, high);
  return sumOfBits(encode, prepare, noise.grid, noise.coins, noise.probability);
};
