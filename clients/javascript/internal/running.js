// Running sums: coins beside ones, or noise and steps together in shares modulo a power of two.

import { fairCoins, rational, uniformBits } from "./bits.js";
import { negativeBinomial, poisson } from "./tables.js";
import { field, honestUsers, isNumber, isWhole, MOST_MESSAGES, summed, unary } from "./values.js";

const MOST_SHARES = 256;
const LARGEST_POISSON = 1n << 28n;

export const counterCoins = (plan) => {
  const tossed = plan.noise.coins;
  field(isWhole(tossed, 2) && tossed % 2 === 0, "noise.coins", "an even number");
  const { encode, length, lowest, coordinates, steps } = summed(plan.domain);
  field(length <= MOST_MESSAGES, "domain", "not too large for this client");
  /** Coins that a batch deals out: of any people that are counted on, enough are tossed. */
  const dealt = (size) => {
    const honest = honestUsers(size, plan.honest_fraction);
    const total = honest === size ? tossed : size * Math.ceil(tossed / honest);
    return total + (total % 2);
  };
  const upTo = (seats, size) => Number((BigInt(seats) * BigInt(dealt(size))) / BigInt(size));
  return {
    encode,
    prepare: steps,
    messages: (size) => coordinates * (length + Math.ceil(dealt(size) / size)),
    randomize: (bits, numbers, size, seat) => {
      const own = upTo(seat + 1, size) - upTo(seat, size);
      const noise = fairCoins(bits, coordinates * own);
      return numbers.flatMap((number, label) =>
        unary(number - lowest, length, noise.slice(label * own, (label + 1) * own), label),
      );
    },
  };
};

/** How numbers are sent in shares: the plan says the modulus, the routing how many messages there are. */
export function sharing(plan, routing, coordinates) {
  const listed = plan.modulus_bits;
  const isListed =
    Array.isArray(listed) &&
    listed.length > 0 &&
    listed.every((each) => Array.isArray(each) && isWhole(each[0], 1) && isWhole(each[1], 1, 64)) &&
    listed.every((each, place) => place === 0 || each[0] > listed[place - 1][0]);
  field(isListed, "modulus_bits", "listed by sizes of batches: tasks of version 0.1 do not say it");
  const modulusBits = (size) => listed.findLast(([from]) => from <= size)?.[1];
  const messages = (size) => {
    const [sent, length] = [routing.messages?.[size], modulusBits(size)];
    const shares = sent / coordinates;
    const fits = isWhole(shares, size > 1 ? 2 : 1, MOST_SHARES) && length !== undefined;
    field(fits, "modulus_bits", "of every batch, and routing.messages shares of every number");
    return sent;
  };
  /** Uniform shares of each number that add up to it: the rest first. */
  const split = (bits, numbers, size) => {
    const [shares, length] = [messages(size) / coordinates, modulusBits(size)];
    const mask = (1n << BigInt(length)) - 1n;
    const drawn = uniformBits(bits, length, numbers.length * (shares - 1));
    return numbers.flatMap((number, label) => {
      const own = drawn.slice(label * (shares - 1), (label + 1) * (shares - 1));
      const rest = own.reduce((left, share) => left - share, number) & mask;
      return [rest, ...own].map((payload) => ({ label, payload }));
    });
  };
  return { messages, split };
}

const counterShares = (plan, routing, drawn) => {
  const { encode, coordinates, steps } = summed(plan.domain);
  const { messages, split } = sharing(plan, routing, coordinates);
  return {
    encode,
    prepare: steps,
    messages,
    randomize: (bits, numbers, size) => {
      const noise = drawn(bits, BigInt(honestUsers(size, plan.honest_fraction)), numbers.length);
      return split(bits, numbers.map((number, place) => BigInt(number) + BigInt(noise[place])), size);
    },
  };
};

/** Draws by a law of `honest` people's parts: the table of the last one is kept, as batches have few sizes. */
function remembered(make) {
  let [known, law] = [undefined, undefined];
  return (honest) => {
    if (known !== honest) [known, law] = [honest, make(honest)];
    return law;
  };
}

export const counterLaplace = (plan, _, routing) => {
  const { ratio } = plan.noise;
  field(isNumber(ratio, 0, 1) && ratio < 1, "noise.ratio", "in (0, 1)");
  const lawOf = remembered((honest) => negativeBinomial([1n, honest], ratio));
  return counterShares(plan, routing, (bits, honest, count) => {
    const [more, less] = [lawOf(honest).sample(bits, count), lawOf(honest).sample(bits, count)];
    return more.map((each, place) => each - less[place]);
  });
};

export const counterSkellam = (plan, _, routing) => {
  const { variance } = plan.noise;
  field(isNumber(variance, 0, 1e15), "noise.variance", "a number above 0, and not too large for this client");
  const [top, bottom] = rational(variance);
  const lawOf = remembered((honest) => {
    // Half of a person's part, in as few equal parts as have a table of reasonable length.
    const [half, of] = [top, 2n * bottom * honest];
    const parts = (half + of * LARGEST_POISSON - 1n) / (of * LARGEST_POISSON) || 1n;
    return { parts: Number(parts), table: poisson(half, of * parts) };
  });
  return counterShares(plan, routing, (bits, honest, count) => {
    const { parts, table } = lawOf(honest);
    const total = Array(count).fill(0);
    for (let part = 0; part < parts; part++) {
      for (const sign of [1, -1]) table.sample(bits, count).forEach((each, place) => (total[place] += sign * each));
    }
    return total;
  });
};
