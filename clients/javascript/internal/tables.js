// Laws on the whole numbers by tables of 128-bit cumulative probabilities, from exact ratios of their masses
// (docs/reference/wire.md): whole numbers only, the same to the last bit in every language.

import { rational, unsigned } from "./bits.js";

const WEIGHT_BITS = 192n;
const SMALLEST = 1n << (WEIGHT_BITS - 136n);
const LONGEST = 1 << 21;
const NOTHING = [0n, 1n];

/** Weights outwards from the mode, each the one before times an exact ratio, rounded down; zeros at the end dropped. */
function walk(ratio, [limitTop, limitBottom]) {
  const weights = [];
  for (let weight = 1n << WEIGHT_BITS, step = 1n; ; step++) {
    const [top, bottom] = ratio(step);
    if (top <= 0n) break;
    if (weight <= SMALLEST) {
      // A geometric series bounds all that is left out; ratios tend to their limit.
      const [high, low] = limitTop * bottom > top * limitBottom ? [limitTop, limitBottom] : [top, bottom];
      if (high < low && (weight + step) * high <= SMALLEST * (low - high)) break;
    }
    if (weights.length > LONGEST) throw new RangeError("a table of noise would be too long for this device");
    weight = (weight * top) / bottom;
    weights.push(weight);
  }
  while (weights.length && weights[weights.length - 1] === 0n) weights.pop();
  return weights;
}

/** A law on consecutive whole numbers: `entries` are cumulative, `low` is the first value. */
export class Table {
  constructor(mode, up, down = () => NOTHING, limit = NOTHING) {
    const above = walk(up, limit);
    const below = walk(down, NOTHING);
    const weights = [...below.reverse(), 1n << WEIGHT_BITS, ...above];
    const total = weights.reduce((sum, weight) => sum + weight, 0n);
    let sum = 0n;
    this.low = Number(mode) - below.length;
    this.entries = weights.slice(0, -1).map((weight) => ((sum += weight) << 128n) / total);
  }

  /** How many entries are at most a number, all shifted right by so much. */
  #upTo(number, shift) {
    let [first, end] = [0, this.entries.length];
    while (first < end) {
      const middle = (first + end) >> 1;
      if (this.entries[middle] >> shift <= number) first = middle + 1;
      else end = middle;
    }
    return first;
  }

  /** So many numbers: the first entry above a uniform number of 128 bits each, whose low half is drawn where it matters. */
  sample(bits, count) {
    const words = unsigned(bits, count, 8);
    const places = words.map((word) => this.#upTo(word, 64n));
    const tied = [...places.keys()].filter(
      (number) => places[number] > 0 && this.entries[places[number] - 1] >> 64n === words[number],
    );
    unsigned(bits, tied.length, 8).forEach((more, number) => {
      const place = tied[number];
      places[place] = this.#upTo((words[place] << 64n) | more, 0n);
    });
    return places.map((place) => this.low + place);
  }
}

/** A fraction in lowest terms: the smaller the numbers, the quicker a table. */
export function reduced(top, bottom) {
  let [one, other] = [top, bottom];
  while (other) [one, other] = [other, one % other];
  return [top / one, bottom / one];
}

/** Poisson numbers of a rational mean. */
export function poisson(meanTop, meanBottom) {
  const [top, bottom] = reduced(meanTop, meanBottom);
  const mode = top / bottom;
  return new Table(
    mode,
    (step) => [top, bottom * (mode + step)],
    (step) => [(mode - step + 1n) * bottom, top],
  );
}

/** Negative binomial numbers, P[k] proportional to C(k + shape - 1, k) ratio^k, of a rational shape. */
export function negativeBinomial([shapeTop, shapeBottom], ratio) {
  const [top, bottom] = rational(ratio);
  const mode =
    shapeTop > shapeBottom ? ((shapeTop - shapeBottom) * top) / (shapeBottom * (bottom - top)) : 0n;
  const upwards = (k) => [top * ((k - 1n) * shapeBottom + shapeTop), bottom * shapeBottom * k];
  return new Table(
    mode,
    (step) => upwards(mode + step),
    (step) => {
      const [high, low] = upwards(mode - step + 1n);
      return mode - step + 1n > 0n ? [low, high] : NOTHING;
    },
    [top, bottom],
  );
}

/** P[k] proportional to ratio^k / k for k >= 1. */
export function logarithmic(ratio) {
  const [top, bottom] = rational(ratio);
  return new Table(1n, (step) => [top * step, bottom * (step + 1n)], undefined, [top, bottom]);
}

/** P[k] proportional to ratio^|k - length/2| on 0..length, for an odd length. */
export function truncatedLaplace(length, ratio) {
  const fraction = rational(ratio);
  const [most, mode] = [BigInt(length), BigInt((length + 1) / 2)];
  return new Table(
    mode,
    (step) => (mode + step <= most ? fraction : NOTHING),
    // The two values beside the centre are equally likely.
    (step) => (step === 1n ? [1n, 1n] : mode - step >= 0n ? fraction : NOTHING),
  );
}

const LOG_BITS = 280n;
const MEAN_BITS = 160n;

/** 2 atanh(top / bottom) in units of 2^-280. */
function twiceAtanh(top, bottom) {
  let power = (top << LOG_BITS) / bottom;
  const square = (power * power) >> LOG_BITS;
  let sum = 0n;
  for (let odd = 1n; power; odd += 2n) {
    sum += power / odd;
    power = (power * square) >> LOG_BITS;
  }
  return 2n * sum;
}

/** -log(1 - ratio) in units of 2^-280. */
export function minusLogOfRest(ratio) {
  const [top, bottom] = rational(ratio);
  let [high, low, halvings] = [bottom, bottom - top, 0n];
  while (high >= 2n * low) [low, halvings] = [2n * low, halvings + 1n];
  return halvings * twiceAtanh(1n, 3n) + twiceAtanh(high - low, high + low);
}

/** Independent negative binomial numbers in many cells as events: how many, in which cells, of which size. */
export class SparseNegativeBinomial {
  constructor([shapeTop, shapeBottom], ratio, cells) {
    // The events' mean, to the nearest multiple of 2^-160.
    const [whole, part] = [minusLogOfRest(ratio) * shapeTop * BigInt(cells), shapeBottom << (LOG_BITS - MEAN_BITS)];
    const rounded = (2n * whole + part) / (2n * part);
    this.cells = cells;
    this.events = poisson(rounded || 1n, 1n << MEAN_BITS);
    this.sizes = logarithmic(ratio);
  }
}
