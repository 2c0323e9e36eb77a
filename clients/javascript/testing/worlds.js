// A shuffler in this process, as honest or hostile as a test wants, in place of fetch.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { recipients } from "../internal/sealing.js";
import { readTask, Schedule } from "../internal/task.js";
import { readCampaign } from "../internal/campaign.js";
import { Client, Device, memoryOutbox } from "../shuffledp.js";

const FOLDER = process.env.SHUFFLEDP_VECTORS ?? new URL("../../../tests/vectors", import.meta.url).pathname;

export const vectors = (name) => JSON.parse(readFileSync(join(FOLDER, `${name}.json`), "utf8"));
export const CAMPAIGNS = Object.fromEntries(vectors("campaigns").campaigns.map((each) => [each.name, each]));
export const TASKS = Object.fromEntries(vectors("tasks").tasks.map((task) => [task.name, task]));

/** Work must be refused by the client in one sentence that has these words. */
export async function refused(work, words) {
  await assert.rejects(work, (error) => {
    assert.equal(error.name, "ShuffleDPError", error.stack);
    assert.match(error.message, words);
    assert.ok(error.message.endsWith(".") && !error.message.includes("\n"), error.message);
    return true;
  });
}

const json = (status, document, headers) => new Response(JSON.stringify(document), { status, headers });
export const problem = (status, kind, headers) =>
  json(status, { type: `urn:shuffledp:problem:${kind}`, title: kind, status, detail: `this is ${kind}.` }, headers);

/** Answers seats and reports of one task; `twist` may answer instead. */
export class Shuffler {
  constructor(name, twist = () => undefined, served = TASKS) {
    this.task = served[name];
    const { routing } = JSON.parse(this.task.text);
    this.schedule = new Schedule(routing.layouts?.[0] ?? routing);
    this.twist = twist;
    this.requests = [];
    this.reports = new Map();
    this.seats = 0;
  }

  seat() {
    const seat = this.seats.toString(16).padStart(32, "0");
    return { seat, lease_seconds: 60, batches: this.schedule.batchesOf(this.seats++) };
  }

  async fetch(url, { method, body, headers }) {
    const path = new URL(url).pathname;
    const request = { method, path, headers, body: body === undefined ? undefined : Buffer.from(body).toString("hex") };
    this.requests.push(request);
    const twisted = await this.twist(request, this);
    if (twisted !== undefined) return twisted;
    if (path.endsWith("/seats")) return json(201, { seats: [this.seat()] });
    const id = path.split("/").at(-1);
    const isNew = !this.reports.has(id);
    this.reports.set(id, request.body);
    return json(isNew ? 201 : 200, { new: isNew });
  }

  get puts() {
    return this.requests.filter((request) => request.method === "PUT");
  }

  /** A client of this shuffler, whose pauses take no time. */
  async client({ outbox = memoryOutbox(), patience = 60 } = {}) {
    const task = await readTask(this.task.text, this.task.id);
    const calls = { url: "http://127.0.0.1:1", token: "t", patience, fetch: this.fetch.bind(this), pause: async () => {} };
    return new Client(task, await recipients(task.keys), calls, outbox);
  }
}

/** A campaign's shuffler and analyzer, who is asked for models: `newest` is the place of the one that it shows. */
export class CampaignServers extends Shuffler {
  newest = 0;
  change = (model) => model;

  constructor(name, twist) {
    super(name, twist, CAMPAIGNS);
  }

  async fetch(url, rules) {
    const path = new URL(url).pathname;
    if (!path.endsWith("/models/newest")) return super.fetch(url, rules);
    this.requests.push({ method: rules.method, path, headers: rules.headers });
    const model = this.change(this.task.models[this.newest]);
    if (rules.headers["If-None-Match"] === `"${model.signature}"`) return new Response(null, { status: 304 });
    return json(200, model, { date: new Date().toUTCString() });
  }

  get fetches() {
    return this.requests.filter((request) => request.method === "GET");
  }

  /** A device of this campaign, whose pauses take no time. */
  async device({ outbox = memoryOutbox(), patience = 60 } = {}) {
    const campaign = await readCampaign(this.task.text, this.task.id);
    const calls = { url: "http://127.0.0.1:1", token: "t", patience, fetch: this.fetch.bind(this), pause: async () => {} };
    return new Device(campaign, await recipients(campaign.keys), calls, calls, outbox);
  }
}
