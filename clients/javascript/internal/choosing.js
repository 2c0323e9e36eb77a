// What a device computes in a campaign: which offer a linear bandit's model chooses, and the vector that says what
// came of it. Doubles; nothing here protects anybody, what is sent is randomized afterwards.

import { unsigned } from "./bits.js";
import { insist } from "./errors.js";

const TOLERANCE = 1e-9;

const isRow = (row) =>
  (Array.isArray(row) || ArrayBuffer.isView(row)) && Array.from(row).every((each) => Number.isFinite(each));
const dot = (one, other) => one.reduce((sum, each, place) => sum + each * other[place], 0);
export const lengthOf = (row) => Math.sqrt(dot(row, row));

/** The features of every offer: the offer itself, or every product of a context's number with one of its. */
export function offeredFeatures(context, offers, { dimension, nonnegative }) {
  const rows = Array.isArray(offers) ? offers : [];
  insist(rows.length > 0 && rows.every(isRow), "offers must be a row of finite numbers for each offer.");
  insist(context === undefined || context === null || isRow(context), "context must be one row of finite numbers.");
  const found = rows.map((offer) =>
    context === undefined || context === null
      ? Array.from(offer)
      : Array.from(context).flatMap((own) => Array.from(offer, (each) => own * each)),
  );
  const words = "pass so many numbers, or a context and offers whose numbers multiply to it";
  insist(found.every((row) => row.length === dimension), `offers must have ${dimension} features: ${words}.`);
  insist(found.every((row) => lengthOf(row) <= 1 + TOLERANCE), "offers must be no longer than 1: divide by the greatest length.");
  const fits = !nonnegative || found.every((row) => row.every((each) => each >= 0));
  insist(fits, "offers must have no negative number: this campaign's epsilon rests on it.");
  return found;
}

// Coefficients of rational approximations to the normal quantile (Wichura 1988, AS 241): relative error 1e-16.
const CENTRE = [
  [2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457, 13731.693765509461125,
    1971.5909503065514427, 133.14166789178437745, 3.387132872796366608],
  [5226.495278852545925, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867, 5394.1960214247511077,
    687.1870074920579083, 42.313330701600911252, 1],
];
const MIDDLE = [
  [7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
    3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734],
  [1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
    0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1],
];
const TAIL = [
  [2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093,
    0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772],
  [2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
    0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1],
];
const ratio = ([top, bottom], x) => {
  const value = (row) => row.reduce((sum, each) => sum * x + each, 0);
  return value(top) / value(bottom);
};

/** The standard normal quantile of a probability in (0, 1). */
export function normalQuantile(probability) {
  const q = probability - 0.5;
  if (Math.abs(q) <= 0.425) return q * ratio(CENTRE, 0.180625 - q * q);
  const r = Math.sqrt(-Math.log(Math.min(probability, 1 - probability)));
  return Math.sign(q) * (r <= 5 ? ratio(MIDDLE, r - 1.6) : ratio(TAIL, r - 5));
}

/** Standard normal numbers for exploring, by quantiles of 53 bits each. */
export function standardNormals(bits, count) {
  return unsigned(bits, count, 8).map((word) => normalQuantile((Number(word >> 11n) + 0.5) * 2 ** -53));
}

const isSquare = (rows, size) => Array.isArray(rows) && rows.length === size && rows.every((row) => isRow(row) && row.length === size);

/** Whether a document is one of the two models of so many features, and nothing else. */
export function isLinearModel(model, dimension) {
  const names = Object.keys(model ?? {}).sort().join();
  if (!isRow(model?.theta) || model.theta.length !== dimension) return false;
  if (names === "root,theta") return isSquare(model.root, dimension);
  return names === "inverse,radius,theta" && Number.isFinite(model.radius) && isSquare(model.inverse, dimension);
}

/** The place of the offer that a model chooses: the largest upper bound, or the best of a theta that is drawn here. */
export function chosenOffer(bits, model, features) {
  const scores = model.root === undefined ? upperBounds(model, features) : drawnScores(bits, model, features);
  return scores.reduce((best, score, place) => (score > scores[best] ? place : best), 0);
}

const upperBounds = ({ theta, inverse, radius }, features) =>
  features.map((row) => {
    const spread = dot(inverse.map((each) => dot(each, row)), row);
    // Rounding may leave a hair below 0.
    return dot(row, theta) + radius * Math.sqrt(Math.max(spread, 0));
  });

function drawnScores(bits, { theta, root }, features) {
  const normals = standardNormals(bits, theta.length);
  const drawn = theta.map((each, place) => each + dot(root[place], normals));
  return features.map((row) => dot(row, drawn));
}

/** Features times reward, and the products of all pairs of features: one vector, no longer than sqrt(2). */
export function jointVector(features, reward) {
  const length = Math.max(lengthOf(features), 1);
  const phi = features.map((each) => each / length);
  const products = phi.flatMap((each, row) =>
    phi.slice(row).map((other, place) => each * other * (place === 0 ? 1 : Math.SQRT2)),
  );
  return [...phi.map((each) => each * reward), ...products];
}
