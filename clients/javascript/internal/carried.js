// A running sum whose noise is carried from window to window: what a person adds to all of its windows is drawn
// together, and each window's part is sent in shares. Whole numbers; variances are doubles, rounded up.

import { discreteGaussian } from "./gaussian.js";
import { sharing } from "./running.js";
import { field, honestUsers, isNumber, isWhole, slotOfPlace, summed } from "./values.js";

const ROUNDING_VARIANCE = 4;
const LARGEST_SUM = 2 ** 52;
const MOST_SLOTS = 1 << 24;

const [isList, isPair] = [Array.isArray, (each) => Array.isArray(each) && each.length === 2];

/** The next double above a positive one. */
function nextUp(number) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, number);
  view.setBigUint64(0, view.getBigUint64(0) + 1n);
  return view.getFloat64(0);
}

/** The coefficients of (1 - q)^i, for i = 0 .. size - 1. */
function patternsOf(size) {
  const rows = [[1]];
  while (rows.length < size) {
    const last = rows[rows.length - 1];
    rows.push([...last, 0].map((each, place) => each - (place ? last[place - 1] : 0)));
  }
  return rows;
}

function check(plan) {
  const { slots, gains, poles, knots, weights, variance, growth, offset, begins = [], restarts = 0 } = plan.noise;
  field(isWhole(slots, 1, MOST_SLOTS), "noise.slots", "a whole number");
  const areGains = isList(gains) && gains.length >= 1 && gains.every((each) => isPair(each) && isWhole(each[0], 1) && isWhole(each[1], 0));
  field(areGains && gains.reduce((product, [p, g]) => product * (p + g), 1) <= LARGEST_SUM, "noise.gains", "pairs of whole numbers");
  const arePoles = isList(poles) && poles.length === gains.length - 1 && poles.every((each) => isNumber(each, 0, 1) && each < 1);
  field(arePoles, "noise.poles", "in (0, 1), one fewer than gains");
  const areKnots = isList(knots) && knots[0] === 0 && knots.every((each, place) => isWhole(each, place ? knots[place - 1] + 1 : 0));
  field(areKnots && knots[knots.length - 1] === slots - 1, "noise.knots", "slots from the first to the last");
  const areWeights = isList(weights) && weights.length === knots.length && weights.every((each) => isWhole(each, 1, LARGEST_SUM));
  field(areWeights, "noise.weights", "whole numbers, one for each knot");
  field(isNumber(variance, 0, 1e32) && isNumber(growth, 0, 100) && isNumber(offset, 0, 1e12), "noise.variance", "a number above 0, as growth and offset");
  const areBegins = isList(begins) && begins.length === poles.length && begins.every((row) => isList(row) && row.length === poles.length && row.every((each) => each === 0 || isNumber(each, 0, 1e35)));
  field(areBegins && isWhole(restarts, 0, 64), "noise.begins", "as many rows of numbers as poles");
  const suppliers = plan.shufflers_used - gains.length;
  field(isWhole(plan.shufflers_used, gains.length + 1, 64), "shufflers_used", "no fewer than the windows");
  field(isWhole(plan.silent_slots ?? 0, 0, suppliers - 1), "silent_slots", "fewer than the slots that supply a noise");
  return { slots, gains, poles, knots, weights, variance, growth, offset, begins, restarts, suppliers };
}

/** What a step of a slot's people weighs: along lines between the knots, rounded down. */
function weightOf(knots, weights, slot) {
  let left = knots.findLastIndex((knot) => knot <= slot);
  if (knots.length === 1) return BigInt(weights[0]);
  left = Math.min(left, knots.length - 2);
  const [rise, run] = [BigInt(weights[left + 1] - weights[left]), BigInt(knots[left + 1] - knots[left])];
  const climbed = rise * BigInt(slot - knots[left]);
  // Division of BigInt goes towards 0, and a line may fall.
  const whole = climbed / run - (climbed % run < 0n ? 1n : 0n);
  return BigInt(weights[left]) + whole;
}

/** The variances with which all people of a slot together draw N_1, N_2, ... of a running sum. */
function noiseVariances({ slots, poles, variance, growth, offset, begins, restarts }, time) {
  const filtered = (slot) => variance * ((slots + offset) / (slots - slot + offset)) ** (2 * growth);
  // Each row over the slots time - poles .. time, of which the last is asked for.
  let rows = [Array.from({ length: poles.length + 1 }, (_, place) => filtered(time - poles.length + place))];
  for (const pole of poles) {
    const kept = rows.map((row) => row.map((each, place) => (1 - pole) * (each - pole * (place ? row[place - 1] : 0))));
    rows = Array.from({ length: rows.length + 1 }, (_, number) =>
      rows[0].map((_, place) => (kept[number]?.[place] ?? 0) + pole * (rows[number - 1]?.[place] ?? 0)),
    );
  }
  const drawn = rows.map((row) => row[row.length - 1]);
  for (let first = 0; first <= restarts; first++) {
    if (first <= time && time < first + poles.length) begins.forEach((row, number) => (drawn[number] += row[time - first]));
  }
  drawn[0] += ROUNDING_VARIANCE;
  return drawn;
}

export const carried = (plan, users, routing) => {
  const shape = check(plan);
  const { slots, gains, knots, weights, suppliers } = shape;
  const { encode, coordinates, steps } = summed(plan.domain);
  const { messages, split } = sharing(plan, routing, coordinates);
  const [windows, slotUsers] = [plan.shufflers_used, Math.ceil(users / slots)];
  const [short, patterns] = [slots * slotUsers - users, patternsOf(gains.length + 1)];
  // kappa(D), the product of p + g D, lowest first; a tap is what a weighed step adds to each window.
  const kappa = gains.reduce(
    (product, [p, g]) => [...product, 0].map((low, place) => p * low + g * (place ? product[place - 1] : 0)),
    [1],
  );
  const taps = patterns.map((_, place) => kappa.reduce((sum, each, row) => sum + each * (patterns[row][place] ?? 0), 0));

  /** What a person of a slot adds to each of its windows, the one that closes first first. */
  const prepare = (bits, value, position) => {
    const slot = slotOfPlace(position, slotUsers, short);
    const weight = weightOf(knots, weights, slot);
    const weighed = steps(bits, value).map((each) => BigInt(each) * weight);
    const found = Array.from({ length: windows }, (_, place) => weighed.map((each) => BigInt(taps[place] ?? 0) * each));
    const honest = honestUsers(slot < short ? slotUsers - 1 : slotUsers, plan.honest_fraction);
    for (let later = 0; later < suppliers; later++) {
      const time = Math.min(slot + later, slots - 1);
      const counted = Math.max(1, Math.min(suppliers, time + 1) - (plan.silent_slots ?? 0));
      noiseVariances(shape, time).forEach((variance, row) => {
        const noise = discreteGaussian(bits, nextUp(variance / (counted * honest)), coordinates);
        if (slot + later >= slots) return;
        patterns[row + 1].forEach((times, place) =>
          noise.forEach((each, label) => (found[later + place][label] += BigInt(times) * each)),
        );
      });
    }
    return found;
  };

  /** How many slots after the seat's own one a window of this size closes. */
  const ageOf = (size, seat) => {
    const count = Math.ceil(size / slotUsers);
    return count - 1 - slotOfPlace(seat, slotUsers, count * slotUsers - size);
  };
  return { encode, prepare, messages, randomize: (bits, found, size, seat) => split(bits, found[ageOf(size, seat)], size) };
};
