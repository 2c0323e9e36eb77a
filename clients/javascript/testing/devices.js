// So many people of a campaign, each with a device of its own: they choose among the offers of a JSON object on standard
// input, and report its reward; prints what each chose, by which model, and what became of it.

import { text } from "node:stream/consumers";
import { Device } from "../shuffledp.js";

const { people, context, offers, reward, ...asked } = JSON.parse(await text(process.stdin));
const found = [];
for (let person = 0; person < people; person++) {
  const device = await Device.open(asked);
  const choice = await device.choose(context, offers);
  found.push({ ...choice, ...(await device.reward(choice, reward)) });
  await device.close();
}
console.log(JSON.stringify(found));
