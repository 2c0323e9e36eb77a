// A person's device in a campaign: it fetches the newest model, chooses by itself, and reports what came of it.

import { roundRandomly, SecureBits } from "./bits.js";
import { ask, checkToken, checkUrl, reaching } from "./calls.js";
import { checkModel, readCampaign } from "./campaign.js";
import { chosenOffer, jointVector, offeredFeatures } from "./choosing.js";
import { insist, ShuffleDPError } from "./errors.js";
import { memoryOutbox } from "./outbox.js";
import { relayOf } from "./relay.js";
import { OneAtATime, Reporting } from "./reporting.js";
import { recipients } from "./sealing.js";

/** A clock that is further off than this cannot say whether a round is over. */
const CLOCK_SECONDS = 600;
const LATE = new Set(["seats-later", "task-full"]);
/** What a model that was chosen by is known by; its features never leave the device. */
const CHOSEN = new WeakMap();

/** How often this device took part, and the newest model that it saw: kept beside its reports, under the campaign's id. */
class Memory {
  #outbox;
  #id;

  constructor(outbox, id) {
    insist(typeof outbox?.kept === "function", "outbox must have kept, as those of this package do.");
    this.#outbox = outbox;
    this.#id = id;
  }

  #entry(name, more) {
    return { taskId: this.#id, id: name, seat: "", body: null, name, ...more };
  }

  async visits() {
    const entries = await this.#outbox.kept(this.#id);
    return entries.filter(({ visit }) => visit !== undefined).map(({ visit }) => visit);
  }

  /** Remember a visit; false, and nothing happens, where another call has its number. */
  sit(visit) {
    return this.#outbox.add(this.#entry(`visit ${visit.number}`, { visit }));
  }

  /** The visit of this number took place in another seat: the first one's was gone. */
  moved(visit) {
    return this.#outbox.settle(this.#entry(`visit ${visit.number}`, { visit }), true);
  }

  async newest() {
    const entries = await this.#outbox.kept(this.#id);
    return entries.find(({ newest }) => newest !== undefined)?.newest ?? 0;
  }

  async see(number) {
    if (number > (await this.newest())) await this.#outbox.settle(this.#entry("newest", { newest: number }), true);
  }
}

class TookPart extends Error {}

/** One person's device in one campaign; one call at a time. */
export class Device {
  #campaign;
  #keys;
  #shuffler;
  #analyzer;
  #outbox;
  #memory;
  #bits = new SecureBits();
  #queue = new OneAtATime();
  #known;
  #clock;

  /** Use `Device.open`. */
  constructor(campaign, keys, shuffler, analyzer, outbox, clock = () => Date.now() / 1000) {
    this.#campaign = campaign;
    this.#keys = keys;
    this.#shuffler = { ...shuffler, bits: this.#bits };
    // Whoever serves models is told no token: nothing may link a fetch to a report.
    this.#analyzer = { ...analyzer, token: undefined, bits: this.#bits };
    this.#outbox = outbox;
    this.#memory = new Memory(outbox, campaign.id);
    this.#clock = clock;
  }

  /** A device of a campaign that was checked: its text has the id, its learner and its methods are known. */
  static async open(options) {
    const { campaignId, campaign, shuffler, analyzer, token, outbox = memoryOutbox(), patience = 60 } = options;
    const through = relayOf(options.relay, options.gatewayKeys);
    const sending = { ...reaching(checkUrl(shuffler, "shuffler"), checkToken(token), patience), through };
    const fetching = reaching(checkUrl(analyzer, "analyzer"), undefined, patience);
    const read = await readCampaign(campaign, campaignId);
    return new Device(read, await recipients(read.keys), sending, fetching, outbox);
  }

  get campaignId() {
    return this.#campaign.id;
  }

  /** The newest model, checked, whatever kept it on the way. */
  model() {
    return this.#queue.run(() => this.#model());
  }

  /** The offer that is best for this person by the newest model; nothing is sent but the request for the model. */
  choose(context, offers) {
    return this.#queue.run(async () => {
      const model = await this.#model();
      const { name, parameters } = this.#step(model, "choose", "pull");
      let [offer, features] = [parameters.arm, undefined];
      if (name === "choose") {
        const offered = offeredFeatures(context, offers, this.#campaign.joint);
        offer = chosenOffer(this.#bits, parameters.model, offered);
        features = offered[offer];
      }
      const choice = Object.freeze({ offer, model: model.number });
      CHOSEN.set(choice, { device: this, model, features });
      return choice;
    });
  }

  /** Report what came of a choice: a reward in [0, 1], or whether it was a success. */
  reward(choice, reward) {
    return this.#queue.run(async () => {
      const chosen = CHOSEN.get(choice);
      insist(chosen?.device === this, "choice must be one that this device made.");
      const { model, features } = chosen;
      const { name } = this.#step(model, "choose", "pull");
      const number = typeof reward === "boolean" ? Number(reward) : reward;
      const lowest = this.#campaign.joint?.lowest_reward ?? 0;
      const fits = typeof number === "number" && number >= lowest && number <= 1;
      insist(fits, `reward must be a number in [${lowest}, 1]: scale it first, nothing was sent.`);
      const value = name === "pull" ? roundRandomly(this.#bits, [number])[0] : jointVector(features, number);
      return this.#report(model, value);
    });
  }

  /** Report this person's value, where the campaign is a statistic. */
  report(value) {
    return this.#queue.run(async () => {
      const model = await this.#model();
      if (model.round === null) return { status: "not asked", model: model.number };
      this.#step(model, "report");
      return this.#report(model, value);
    });
  }

  /** Send what waits in the outbox, of every round: the same bytes. */
  flush() {
    return this.#queue.run(async () => {
      const tally = { reports: 0, new: 0, refused: 0 };
      const rounds = new Map((await this.#memory.visits()).map(({ round, seating }) => [`${round}.${seating}`, [round, seating]]));
      for (const [number, seating] of rounds.values()) {
        const task = this.#campaign.round(number, seating);
        if (task === undefined) continue;
        const sent = await new Reporting(task, this.#keys, this.#shuffler, this.#outbox).flush();
        for (const name of Object.keys(tally)) tally[name] += sent[name];
      }
      return tally;
    });
  }

  /** How often this device took part. */
  async visits() {
    return (await this.#memory.visits()).length;
  }

  close() {
    return this.#queue.run(() => this.#outbox.close());
  }

  #step(model, ...names) {
    const found = model.step?.name;
    const calls = { choose: "choose and reward", pull: "choose and reward", report: "report" };
    const words = `the campaign asks devices for ${found ?? "nothing any more"}: call ${calls[found] ?? "model"}`;
    if (!names.includes(found)) throw new ShuffleDPError(`${words}.`);
    return model.step;
  }

  async #model() {
    // Only what the model itself says is sent back: a tag of somebody's own making would be a name.
    const tag = this.#known === undefined ? {} : { "If-None-Match": `"${this.#known.signature}"` };
    const read = (status, answer, headers) => {
      if (status === 304) return this.#known;
      if (typeof answer.text !== "string" || typeof answer.signature !== "string") return undefined;
      this.#checkClock(headers);
      return { text: answer.text, signature: answer.signature };
    };
    const path = `/v1/campaigns/${this.#campaign.id}/models/newest`;
    const found = await ask(this.#analyzer, "GET", path, read, undefined, tag);
    if (found.model !== undefined) return found.model;
    const model = await checkModel(this.#campaign, found, await this.#memory.newest());
    await this.#memory.see(model.number);
    this.#known = { ...found, model };
    return model;
  }

  /** Where rounds end at a time, a device whose clock is far off cannot tell. */
  #checkClock(headers) {
    const there = Date.parse(headers?.get("date") ?? "") / 1000 + Number(headers?.get("age") ?? 0);
    if (this.#campaign.seconds === null || !Number.isFinite(there)) return;
    const off = Math.abs(this.#clock() - there);
    insist(off <= CLOCK_SECONDS, `clock of this device is ${Math.round(off)} s off the analyzer's: set it, nothing was sent.`);
  }

  #mayVisit(seating, visits) {
    const { seatings } = this.#campaign;
    const own = seatings[seating];
    if (visits.some((visit) => seatings[visit.seating].group !== own.group)) return false;
    return visits.filter((visit) => visit.seating === seating).length < own.visits && visits.length < own.in_all;
  }

  async #report(model, value) {
    const outcome = (status) => ({ status, model: model.number });
    const place = model.round;
    if (place === null) return outcome("not asked");
    if (place.closes !== null && this.#clock() >= place.closes) return outcome("late");
    const task = { ...this.#campaign.round(place.number, place.seating), slots: [place.first_slot, place.end_slot] };
    const encoded = await task.randomizer.encode(value);
    const visits = await this.#memory.visits();
    if (!this.#mayVisit(place.seating, visits)) return outcome("took part");
    // Whoever would be seated where it took part already takes no seat: somebody else needs it.
    const last = Math.min(place.end_slot, task.schedule.slotOf(task.schedule.users - 1) + 1);
    const seen = new Set(visits.filter((visit) => visit.round === place.number).map((visit) => visit.slot));
    const open = Array.from({ length: Math.max(0, last - place.first_slot) }, (_, step) => place.first_slot + step);
    if (open.every((slot) => seen.has(slot))) return outcome("took part");
    let isSeated = false;
    /** Written down before anything is randomized: at no time did this device take part unnoticed. */
    const seated = async ({ slot }) => {
      const visit = { number: visits.length, seating: place.seating, round: place.number, slot };
      if (seen.has(slot)) throw new TookPart();
      if (isSeated) await this.#memory.moved(visit);
      else if (!(await this.#memory.sit(visit))) throw new TookPart();
      isSeated = true;
    };
    try {
      await new Reporting(task, this.#keys, this.#shuffler, this.#outbox).report(encoded, undefined, seated);
    } catch (stopped) {
      if (stopped instanceof TookPart) return outcome("took part");
      if (LATE.has(stopped.kind)) return outcome("late");
      throw stopped;
    }
    return outcome("reported");
  }
}
