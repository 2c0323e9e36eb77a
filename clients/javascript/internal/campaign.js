// A campaign's document and its models, checked before a device chooses or sends anything (docs/reference/wire.md).

import { isLinearModel } from "./choosing.js";
import { insist, ShuffleDPError } from "./errors.js";
import { keyFrom, keysOf, readDocument, served } from "./task.js";
import { isWhole } from "./values.js";

const CONTEXT = "shuffledp model v1\n";
const FETCH = "so nothing was sent: fetch it from the campaign's analyzer";

const isObject = (each) => typeof each === "object" && each !== null && !Array.isArray(each);
const sameKeys = (object, ...names) => isObject(object) && Object.keys(object).sort().join() === names.sort().join();

function refuse(what) {
  throw new ShuffleDPError(`campaign.${what}, so nothing was sent: take the campaign's text from whoever made it.`);
}

/** What people of a learner may be asked for, by its kind: a model that asks for anything else is refused. */
const LEARNERS = {
  "linear-bandit": ({ setting, model_age: age }) => {
    const joint = { dimension: setting?.dimension, nonnegative: setting?.nonnegative, lowest_reward: setting?.lowest_reward };
    const fits = isWhole(joint.dimension, 1) && joint.dimension <= 200 && typeof joint.nonnegative === "boolean";
    if (!fits || ![0, -1].includes(joint.lowest_reward) || !isWhole(age, 0)) refuse("learner must be a linear bandit's");
    return {
      age,
      joint,
      mayAsk: ({ name, parameters }) =>
        name === "choose" &&
        sameKeys(parameters, "model", "joint") &&
        sameKeys(parameters.joint, ...Object.keys(joint)) &&
        Object.entries(joint).every(([key, value]) => parameters.joint[key] === value) &&
        isLinearModel(parameters.model, joint.dimension),
    };
  },
  arms: ({ arms }) => {
    if (!isWhole(arms, 2)) refuse("learner.arms must be a whole number");
    return {
      age: 0,
      mayAsk: ({ name, parameters }) =>
        name === "pull" && sameKeys(parameters, "arm") && isWhole(parameters.arm, 0) && parameters.arm < arms,
    };
  },
  statistic: () => ({ age: 0, mayAsk: ({ name, parameters }) => name === "report" && sameKeys(parameters) }),
};

/** A campaign whose text has this id: its rounds, its learner, and the key that its models are signed with. */
export async function readCampaign(text, campaignId) {
  const document = await readDocument(text, campaignId, "campaign");
  const { learner, routing, seatings, waiting } = document;
  const keys = keysOf(document);
  if (!Object.hasOwn(LEARNERS, learner?.kind)) {
    const known = Object.keys(LEARNERS).join(", ");
    refuse(`learner.kind ${String(learner?.kind)} is unknown to this client, which knows ${known}`);
  }
  const seconds = waiting?.seconds;
  if (seconds !== null && !(typeof seconds === "number" && seconds > 0)) refuse("waiting.seconds must be a number or null");
  const isRouting = isObject(routing) && routing.version === 1 && isWhole(routing.rounds, 1) && Array.isArray(routing.layouts);
  if (!isRouting || !Array.isArray(seatings) || seatings.length !== routing.layouts.length) refuse("routing must have a layout for every seating");
  for (const { visits, group, in_all: all } of seatings) {
    if (!isWhole(visits, 1) || !isWhole(group, 0) || !isWhole(all, 1)) refuse("seatings must have whole numbers of visits");
  }
  // Every seating is checked now, and not first where a model opens it.
  seatings.forEach(({ plan }, place) => served(campaignId, plan, routing.layouts[place], keys));
  let verifying;
  try {
    verifying = await crypto.subtle.importKey("raw", keyFrom(document.signing_key, "signing_key"), "Ed25519", false, ["verify"]);
  } catch (cause) {
    if (cause instanceof ShuffleDPError) throw cause;
    refuse("signing_key must be a key of Ed25519, which needs a browser or Node of 2025");
  }
  const { age, mayAsk, joint } = LEARNERS[learner.kind](learner);
  return {
    id: campaignId,
    seatings,
    rounds: routing.rounds,
    keys: keys.keys,
    seconds,
    verifying,
    age,
    mayAsk,
    joint,
    /** A round, served like a task; undefined where the campaign has none of this number and seating. */
    round: (number, seating) =>
      number < routing.rounds && seating < seatings.length
        ? served(`${campaignId}.${number}.${seating}`, seatings[seating].plan, routing.layouts[seating], keys)
        : undefined,
  };
}

function bytesOf(base64url) {
  const plain = atob(base64url.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (letter) => letter.charCodeAt(0));
}

async function isSigned({ verifying }, text, signature) {
  if (!/^[A-Za-z0-9_-]{86}==$/.test(signature)) return false;
  return crypto.subtle.verify("Ed25519", verifying, bytesOf(signature), new TextEncoder().encode(CONTEXT + text));
}

function isModel(model) {
  const round = model?.round;
  const isRound =
    round === null ||
    (sameKeys(round, "number", "seating", "first_slot", "end_slot", "closes") &&
      ["number", "seating", "first_slot", "end_slot"].every((name) => isWhole(round[name], 0)) &&
      (round.closes === null || typeof round.closes === "number"));
  const isStep = model?.step === null || (isObject(model?.step) && isObject(model.step.parameters));
  return isObject(model) && model.version === 1 && isWhole(model.number, 0) && isRound && isStep && "estimate" in model;
}

/** What a signed text says, if the campaign's analyzer signed it and the campaign may ask for it. */
export async function checkModel(campaign, { text, signature }, least) {
  insist(await isSigned(campaign, text, signature), `model must be signed by the campaign's analyzer, ${FETCH}.`);
  let model;
  try {
    model = JSON.parse(text);
  } catch {
    model = null;
  }
  insist(isModel(model), `model must be one of version 1, ${FETCH}.`);
  insist(model.campaign === campaign.id, `model must be of this campaign, ${FETCH}.`);
  insist(model.number >= least, `model must have number ${least} or more, which this device has seen, ${FETCH} again.`);
  if (model.round === null) return model;
  const { number, seating, first_slot: first, end_slot: end } = model.round;
  const task = campaign.round(number, seating);
  const fits = task !== undefined && first < task.schedule.slots && end - first === 1 + campaign.age;
  insist(fits, `model.round must be one of the campaign's, ${FETCH}.`);
  insist(model.step !== null && campaign.mayAsk(model.step), `model.step must be one that the campaign's learner may ask for, ${FETCH}.`);
  return model;
}
