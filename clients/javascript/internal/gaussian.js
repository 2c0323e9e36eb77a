// Discrete Gaussians of any width, exactly and without tables: P[x] is proportional to e^(-x^2 / 2v) on the whole
// numbers. Floating point decides only where it cannot be wrong; whole numbers decide the rest.

import { rational, unsigned } from "./bits.js";

const WHOLE = 2 ** 32;
const MARGIN = 2 ** -32;
const LARGEST_OFFSET = 11 / 16;
const SIGN_AT = 50n;
const ZEROS_AT = 51n;
const GUARD = 64;

const bitLength = (number) => (number === 0n ? 0 : number.toString(2).length);
const trailingZeros = (number) => BigInt(bitLength(number & -number) - 1);

/** The j of B = 2^j, the smallest power of two with 2 B^2 > variance, for a variance of 1 or more. */
function widthBits(variance) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, variance);
  // The exponent e with variance = m 2^e, m in [1/2, 1).
  return BigInt((((view.getUint16(0) >> 4) & 0x7ff) - 1022) >> 1);
}

/** Whole numbers low <= 2^precision e^(top/bottom) <= high, for an exponent >= 0. */
function encloseExponential(top, bottom, precision) {
  const halvings = bitLength(top / bottom) + 1;
  const small = (top << precision) / (bottom << BigInt(halvings));
  let [low, high, termLow, termHigh] = Array(4).fill(1n << precision);
  for (let step = 1n; termLow; step++) {
    termLow = ((termLow * small) >> precision) / step;
    termHigh = (((termHigh * (small + 1n)) >> precision) + 1n) / step + 1n;
    low += termLow;
    high += termHigh;
  }
  high += termHigh;
  for (let time = 0; time < halvings; time++) {
    low = (low * low) >> precision;
    high = ((high * high) >> precision) + 1n;
  }
  return [low, high];
}

/** Whole numbers low <= 2^(length + power) e^-(top/bottom) <= high. */
function encloseProbability(power, top, bottom, length) {
  const places = length + power;
  const isNegative = top < 0n;
  const size = (isNegative ? -top : top) / bottom;
  if (top === 0n && places >= 0) return [1n << BigInt(places), 1n << BigInt(places)];
  // e is above 2: it is at most 1 and need not be computed.
  if (!isNegative && places <= Number(size)) return [0n, 1n];
  const precision = BigInt(length + GUARD + 2 * bitLength(size));
  const [low, high] = encloseExponential(isNegative ? -top : top, bottom, precision);
  if (!isNegative) {
    const scaled = 1n << (BigInt(places) + precision);
    return [scaled / high, scaled / low + 1n];
  }
  const scale = BigInt(places) - precision;
  return scale >= 0n ? [low << scale, high << scale] : [low >> -scale, (high >> -scale) + 1n];
}

/** Whether a uniform number on [0, 1) that begins with these binary digits is below 2^power e^-(top/bottom). */
function isBelow(bits, power, top, bottom, digits, length) {
  for (;;) {
    const [low, high] = encloseProbability(power, top, bottom, length);
    if (digits < low) return true;
    if (digits >= high) return false;
    digits = (digits << 64n) | unsigned(bits, 1, 8)[0];
    length += 64;
  }
}

/** What a word proposes, or undefined if it is refused: in whole numbers only. */
function decided(bits, word, digits, variance) {
  const width = 1n << widthBits(variance);
  let [count, zeros, length] = [0n, word >> ZEROS_AT, 13n];
  // The uniform number is at least 2^-32 then, and what it is compared with below 2^-47.
  if (!zeros && digits) return undefined;
  while (!zeros) {
    count += length;
    [zeros, length] = [unsigned(bits, 1, 8)[0], 64n];
  }
  count += trailingZeros(zeros);
  const size = count * width + (word % width);
  const isNegative = (word >> SIGN_AT) & 1n;
  if (isNegative && !size) return undefined;
  // 1 / (2 v) = half / whole; the exponent is x^2 / 2v - min(B^2 / 2v, 11/16).
  const [top, bottom] = rational(variance);
  const [half, whole] = [bottom, 2n * top];
  const offset = 16n * width * width * half < 11n * whole ? 16n * width * width * half : 11n * whole;
  const exponent = 16n * size * size * half - offset;
  const isAccepted = isBelow(bits, Number(count) - 1, exponent, 16n * whole, BigInt(digits), 32);
  return isAccepted ? (isNegative ? -size : size) : undefined;
}

function proposed(bits, word, digits, variance, margin) {
  const shift = widthBits(variance);
  const zeros = word >> ZEROS_AT;
  const count = zeros ? trailingZeros(zeros) : 0n;
  const size = (count << shift) | (word & ((1n << shift) - 1n));
  const rate = 0.5 / variance;
  const float = Number(size);
  const exponent = -float * float * rate + Math.min(rate * 4 ** Number(shift), LARGEST_OFFSET);
  const scale = zeros ? 2 ** Number(count) * (WHOLE / 2) : 0;
  const gap = Math.exp(exponent) * scale - digits;
  if (gap > -margin * WHOLE && gap < 1 + margin * WHOLE) return decided(bits, word, digits, variance);
  const isNegative = (word >> SIGN_AT) & 1n;
  if (gap < 0 || (isNegative && !size)) return undefined;
  return isNegative ? -size : size;
}

/** So many draws of one variance, 1 to 2^100, as BigInt; with a margin of 1 or more, whole numbers decide everything. */
export function discreteGaussian(bits, variance, count, margin = MARGIN) {
  if (!(variance >= 1 && variance <= 2 ** 100)) throw new RangeError("a variance must lie in 1..2^100");
  const drawn = new Array(count);
  let pending = [...drawn.keys()];
  while (pending.length) {
    const words = unsigned(bits, pending.length, 8);
    const digits = unsigned(bits, pending.length, 4);
    pending = pending.filter((place, number) => {
      drawn[place] = proposed(bits, words[number], digits[number], variance, margin);
      return drawn[place] === undefined;
    });
  }
  return drawn;
}
