// A click counter that does not know who clicked. settings.json, task.json and the client, shuffledp.js, lie beside
// the page: `node clients/javascript/bundle.js examples/browser` puts the client there.

import { Client, indexedDbOutbox } from "./shuffledp.js";

const status = document.querySelector('[role="status"]');
const buttons = [...document.querySelectorAll("button")];
const say = (words) => (status.textContent = words);

async function opened() {
  // The id is this page's own: the text must hash to it, wherever it comes from.
  const [settings, task] = await Promise.all([
    fetch("settings.json").then((answer) => answer.json()),
    fetch("task.json").then((answer) => answer.text()),
  ]);
  return Client.open({ ...settings, task, outbox: await indexedDbOutbox() });
}

/** What a visit left in the outbox is sent by the next one: the same bytes. */
async function begin() {
  const client = await opened();
  const { reports } = await client.flush();
  say(reports ? "Your answer from last time has arrived." : "");
  return client;
}

const client = begin();
client.catch((error) => say(error.message));

async function answer(value) {
  buttons.forEach((button) => (button.disabled = true));
  say("One moment ...");
  try {
    const { known } = await (await client).report(value, { name: "clicked" });
    say(known ? "You have answered before; nothing new was made." : "Thank you. Your answer is in, and it is nobody's.");
  } catch (error) {
    say(error.message);
    buttons.forEach((button) => (button.disabled = false));
  }
}

document.querySelector("#yes").addEventListener("click", () => answer(1));
document.querySelector("#no").addEventListener("click", () => answer(0));
