// Random bits, and exact samplers on them: whole numbers only, as docs/reference/wire.md says. Numbers are drawn
// low byte first; bits of a byte highest first.

/** Bits of the operating system, a block at a time. The only source that a client ever has. */
export class SecureBits {
  #block = new Uint8Array(4096);
  #used = 4096;

  /** @param {number} count @returns {Uint8Array} fresh random bytes */
  bytes(count) {
    const out = new Uint8Array(count);
    for (let place = 0; place < count; ) {
      if (this.#used === this.#block.length) {
        globalThis.crypto.getRandomValues(this.#block);
        this.#used = 0;
      }
      const taken = Math.min(count - place, this.#block.length - this.#used);
      out.set(this.#block.subarray(this.#used, this.#used + taken), place);
      // Nothing that was drawn stays in memory.
      this.#block.fill(0, this.#used, this.#used + taken);
      this.#used += taken;
      place += taken;
    }
    return out;
  }
}

/** Given bytes instead of random ones: for test vectors. No public function takes it. */
export class BytesForTestsOnly {
  #given;
  used = 0;

  constructor(given) {
    this.#given = given;
  }

  bytes(count) {
    if (this.used + count > this.#given.length) throw new RangeError("the test gave too few bytes");
    return this.#given.slice(this.used, (this.used += count));
  }
}

/** Whole numbers of 1, 2, 4 or 8 bytes; the last as BigInt. */
export function unsigned(bits, count, width) {
  const drawn = bits.bytes(count * width);
  const view = new DataView(drawn.buffer);
  const read = {
    1: (at) => drawn[at],
    2: (at) => view.getUint16(at, true),
    4: (at) => view.getUint32(at, true),
    8: (at) => view.getBigUint64(at, true),
  }[width];
  return Array.from({ length: count }, (_, place) => read(place * width));
}

/** Fair coins: bits of as few bytes as hold them. */
export function fairCoins(bits, count) {
  const drawn = bits.bytes((count + 7) >> 3);
  return Array.from({ length: count }, (_, place) => (drawn[place >> 3] >> (7 - (place & 7))) & 1);
}

/** The rational number that a double is: numerator and denominator. */
export function rational(number) {
  if (!Number.isFinite(number) || number < 0) throw new RangeError("a number must be finite and not negative");
  let denominator = 1n;
  // Doubling a double is exact, until it is whole.
  while (!Number.isInteger(number)) {
    number *= 2;
    denominator *= 2n;
  }
  return [BigInt(number), denominator];
}

/** `count` coins that are 1 with exactly this probability: uniform digits are compared with those of the number. */
export function bernoulli(bits, probability, count) {
  const [top, bottom] = rational(probability);
  if (top > bottom) throw new RangeError("a probability must be at most 1");
  if (top === bottom) return new Array(count).fill(1);
  let rest = top << 16n;
  let digits = rest / bottom;
  rest %= bottom;
  const first = unsigned(bits, count, 2);
  const coins = first.map((drawn) => (drawn < Number(digits) ? 1 : 0));
  let tied = [...first.keys()].filter((place) => first[place] === Number(digits));
  while (tied.length && rest) {
    rest <<= 64n;
    digits = rest / bottom;
    rest %= bottom;
    const words = unsigned(bits, tied.length, 8);
    tied.forEach((place, number) => (coins[place] = words[number] < digits ? 1 : 0));
    tied = tied.filter((_, number) => words[number] === digits);
  }
  return coins;
}

export function coins(bits, probability, count) {
  return probability === 0.5 ? fairCoins(bits, count) : bernoulli(bits, probability, count);
}

/** Whole numbers uniform below a bound of at most 2^32: drawn again where they are too large. */
export function uniformBelow(bits, bound, count) {
  const needed = 32 - Math.clz32(bound - 1);
  const width = needed <= 8 ? 1 : needed <= 16 ? 2 : 4;
  const mask = needed === 32 ? 0xffffffff : 2 ** needed - 1;
  const draw = (some) => unsigned(bits, some, width).map((drawn) => (drawn & mask) >>> 0);
  const found = draw(count);
  let tooLarge = [...found.keys()].filter((place) => found[place] >= bound);
  while (tooLarge.length) {
    const again = draw(tooLarge.length);
    tooLarge.forEach((place, number) => (found[place] = again[number]));
    tooLarge = tooLarge.filter((place) => found[place] >= bound);
  }
  return found;
}

/** A uniformly random order of so many things: by keys of 64 bits, drawn again while two are equal. */
export function randomOrder(bits, size) {
  for (;;) {
    const keys = unsigned(bits, size, 8);
    if (new Set(keys).size === size) {
      return [...keys.keys()].sort((one, other) => (keys[one] < keys[other] ? -1 : 1));
    }
  }
}

/** The floor or the ceiling of each number, with the number, to the nearest 2^-32, as its mean. */
export function roundRandomly(bits, numbers) {
  const drawn = unsigned(bits, numbers.length, 4);
  return numbers.map((number, place) => {
    const scaled = number * 2 ** 32;
    const size = Math.abs(scaled);
    // Adding 2^52 leaves the nearest whole number, halves to even; larger doubles are whole.
    const whole = size < 2 ** 52 ? Math.sign(scaled) * (size + 2 ** 52 - 2 ** 52) : scaled;
    return Number((BigInt(whole) + BigInt(drawn[place])) >> 32n);
  });
}

/** Whole numbers of so many bits, 1 to 64, as BigInt: of the narrowest width that holds them. */
export function uniformBits(bits, length, count) {
  const width = [1, 2, 4, 8].find((bytes) => length <= 8 * bytes);
  const mask = (1n << BigInt(length)) - 1n;
  return unsigned(bits, count, width).map((drawn) => BigInt(drawn) & mask);
}
