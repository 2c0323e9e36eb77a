// Randomizes one value many times by each plan of a JSON list on standard input; prints how often each outcome came.
// An outcome is, for every label in order, how many messages say 0, 1, ...: what a shuffled report shows.

import { text } from "node:stream/consumers";
import { SecureBits } from "../internal/bits.js";
import { randomizerOf } from "../internal/randomizers.js";

const bits = new SecureBits();
const answers = JSON.parse(await text(process.stdin)).map(({ plan, value, size, seat, times }) => {
  const { encode, prepare, randomize } = randomizerOf(plan);
  const encoded = encode(value);
  const counts = {};
  for (let time = 0; time < times; time++) {
    const seen = {};
    for (const { label, payload } of randomize(bits, prepare(bits, encoded), size, seat)) {
      seen[`${label}:${payload}`] = (seen[`${label}:${payload}`] ?? 0) + 1;
    }
    const outcome = Object.entries(seen).sort().map(([what, many]) => `${what}x${many}`).join(" ");
    counts[outcome] = (counts[outcome] ?? 0) + 1;
  }
  return counts;
});
console.log(JSON.stringify(answers));
