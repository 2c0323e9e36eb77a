// Randomizes one value many times by each plan of a JSON list on standard input; prints how often each outcome came.
// An outcome is, for every label in order, how many messages say 0, 1, ...: what a shuffled report shows. With `mod`
// labels and payloads are taken modulo it; with `bin` the messages are shares, and an outcome is every label's total,
// in bins of that width. Several batches are drawn together.

import { text } from "node:stream/consumers";
import { SecureBits } from "../internal/bits.js";
import { randomizerOf } from "../internal/randomizers.js";

const bits = new SecureBits();

function counted(messages, mod) {
  const seen = {};
  for (const { label, payload } of messages) {
    const what = mod === undefined ? `${label}:${payload}` : `${label % mod}:${BigInt(payload) % BigInt(mod)}`;
    seen[what] = (seen[what] ?? 0) + 1;
  }
  return Object.entries(seen).sort().map(([what, many]) => `${what}x${many}`).join(" ");
}

function added(messages, length, bin) {
  const totals = [];
  for (const { label, payload } of messages) totals[label] = (totals[label] ?? 0n) + payload;
  return totals.map((total) => Math.floor(Number(BigInt.asIntN(length, total)) / bin)).join(" ");
}

const answers = [];
for (const { plan, routing, value, batches, position, times, mod, bin } of JSON.parse(await text(process.stdin))) {
  const { encode, prepare, randomize } = randomizerOf(plan, routing);
  const encoded = await encode(value);
  const modulusBits = (size) => plan.modulus_bits.findLast(([from]) => from <= size)[1];
  const counts = {};
  for (let time = 0; time < times; time++) {
    const prepared = prepare(bits, encoded, position);
    const outcome = batches
      .map(({ size, seat }) => {
        const messages = randomize(bits, prepared, size, seat);
        return bin === undefined ? counted(messages, mod) : added(messages, modulusBits(size), bin);
      })
      .join(" | ");
    counts[outcome] = (counts[outcome] ?? 0) + 1;
  }
  answers.push(counts);
}
console.log(JSON.stringify(answers));
