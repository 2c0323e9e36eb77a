// Histograms of one round: what a device sends for a category.

import { bernoulli, fairCoins, uniformBelow, uniformBits } from "./bits.js";
import { flood } from "./counts.js";
import { SparseNegativeBinomial } from "./tables.js";
import { categories, field, isNumber, isWhole, MOST_MESSAGES, plain } from "./values.js";

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

export const correlatedHistogram = (plan) => {
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

export const decoys = (plan) =>
  blanket(plan, (size) => (bits, code, count) => {
    const payloads = uniformBelow(bits, size, count);
    payloads[0] = code;
    return plain(payloads);
  });

export const zsumHistogram = (plan) => {
  const { size, encode } = categories(plan.categories);
  const { silence } = plan.noise;
  field(isNumber(silence, 0, 0.5) && size < MOST_MESSAGES, "noise.silence", "in (0, 1/2]");
  return {
    encode,
    messages: () => 1 + size,
    randomize: (bits, code) => {
      const silent = bernoulli(bits, silence, size);
      return plain([code, ...silent.flatMap((coin, category) => (coin ? [] : [category]))]);
    },
  };
};

export const optIn = (plan) => {
  const { size, encode } = categories(plan.categories);
  const { probability } = plan.noise;
  field(isNumber(probability, 0, 1) && size < MOST_MESSAGES, "noise.probability", "in (0, 1]");
  return {
    encode,
    messages: () => 2 + size,
    randomize: (bits, code) => {
      if (!bernoulli(bits, probability, 1)[0]) return plain([code]);
      const heads = fairCoins(bits, size).flatMap((coin, category) => (coin ? [category] : []));
      return plain([code, size, ...heads]);
    },
  };
};

export const fakeUsers = (plan) => {
  const { size, encode } = categories(plan.categories);
  const { fake_rows: rows, flip, cap } = plan.noise;
  field(isNumber(flip, 0, 0.5) && flip < 0.5, "noise.flip", "in (0, 1/2)");
  const fits = isWhole(rows, 1, MOST_MESSAGES) && isWhole(cap, 1, MOST_MESSAGES) && (rows + 1) * size <= 1 << 24;
  field(fits, "noise.fake_rows", "not too large for this client");
  return {
    encode,
    messages: () => cap,
    randomize: (bits, code) => {
      const flipped = bernoulli(bits, flip, (rows + 1) * size);
      // The first row is the person's own, and its one comes first unless it was flipped away.
      const ones = flipped.flatMap((coin, cell) => (coin && cell !== code ? [cell % size] : []));
      return plain([...(flipped[code] ? [] : [code]), ...ones].slice(0, cap));
    },
  };
};

function nextPrime(number) {
  for (; ; number++) {
    let divisor = 2;
    while (divisor * divisor <= number && number % divisor) divisor++;
    if (divisor * divisor > number) return number;
  }
}

export const buckets = (plan) =>
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

export const hadamard = (plan) =>
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
