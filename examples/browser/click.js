// A click counter that does not know who clicked. settings.json, task.json and the client, shuffledp.js, lie beside
// the page: `node clients/javascript/bundle.js examples/browser` puts the client there. With a relay in the settings,
// the gateway's keys do, too: gateway.ohttp-keys. Where the task names an issuer, a person's token is in the page's
// address, behind the #: a browser sends that part to no server.

import { Client, indexedDbOutbox } from "./shuffledp.js";

const status = document.querySelector('[role="status"]');
const buttons = [...document.querySelectorAll("button")];
const say = (words) => (status.textContent = words);

async function beside(file) {
  const answer = await fetch(file);
  if (!answer.ok) throw new Error(`${file} is not beside this page: docs/howto/report-from-a-browser.md says how to make it.`);
  return answer;
}

/** The token behind the #, in base64url as `shuffledp token fetch` writes it; undefined where there is none. */
function ownToken() {
  const text = location.hash.slice(1).replaceAll("-", "+").replaceAll("_", "/");
  if (!/^([A-Za-z0-9+/]{4})*$/.test(text)) throw new Error("The token behind the # is not whole: open the link as it was given to you.");
  return text ? Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)) : undefined;
}

async function opened() {
  // The id is this page's own: the text must hash to it, wherever it comes from.
  const settings = await (await beside("settings.json")).json();
  const task = await (await beside("task.json")).text();
  const keys = settings.relay && new Uint8Array(await (await beside("gateway.ohttp-keys")).arrayBuffer());
  const token = ownToken() ?? settings.token;
  return Client.open({ ...settings, token, gatewayKeys: keys, task, outbox: await indexedDbOutbox() });
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
