// Reports the values of a JSON object on standard input to a shuffler that runs, and prints what became of them.

import { text } from "node:stream/consumers";
import { Client, fileOutbox } from "../shuffledp.js";
import { fetchFrom } from "./from.js";

const { values, folder, gatewayKeys: hex, from, ...asked } = JSON.parse(await text(process.stdin));
if (hex !== undefined) asked.gatewayKeys = Buffer.from(hex, "hex");
if (from !== undefined) globalThis.fetch = fetchFrom(from);
const client = await Client.open({ ...asked, outbox: await fileOutbox(folder) });
const sent = { reports: 0, new: 0 };
for (const [number, value] of values.entries()) {
  const one = await client.report(value, { name: `value ${number}` });
  sent.reports += one.reports;
  sent.new += one.new;
}
const { reports: waiting } = await client.flush();
await client.close();
console.log(JSON.stringify({ ...sent, waiting }));
