// Which methods this client knows. Every law is the one of docs/reference/wire.md, drawn exactly.

import { carried } from "./carried.js";
import { binaryCoins, boundedBits, correlated, poissonBits, pure, response, zsum } from "./counts.js";
import { ShuffleDPError } from "./errors.js";
import { buckets, correlatedHistogram, decoys, fakeUsers, hadamard, optIn, zsumHistogram } from "./histograms.js";
import { counterCoins, counterLaplace, counterSkellam } from "./running.js";
import { field } from "./values.js";

const METHODS = {
  "binary-sum/poisson-bits": poissonBits,
  "binary-sum/coins": binaryCoins,
  "binary-sum/pure": pure,
  "binary-sum/rr": response,
  "binary-sum/zsum": zsum,
  "binary-sum/correlated": correlated,
  "bounded-sum/bits": boundedBits,
  "histogram/decoys": decoys,
  "histogram/buckets": buckets,
  "histogram/hadamard": hadamard,
  "histogram/correlated": correlatedHistogram,
  "histogram/zsum": zsumHistogram,
  "histogram/opt-in": optIn,
  "histogram/fake-users": fakeUsers,
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
