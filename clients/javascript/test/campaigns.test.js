// Campaigns: vectors that the Python package writes, and a device that meets honest and hostile servers.

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { BytesForTestsOnly } from "../internal/bits.js";
import { checkModel, readCampaign } from "../internal/campaign.js";
import { chosenOffer, jointVector, normalQuantile, offeredFeatures, standardNormals } from "../internal/choosing.js";
import { packed } from "../internal/sealing.js";
import { fromHex, toHex } from "../internal/task.js";
import { Device, fileOutbox, memoryOutbox } from "../shuffledp.js";
import { CAMPAIGNS, CampaignServers, problem, vectors } from "../testing/worlds.js";

const GIVEN = vectors("campaigns");

test("every model that was signed is taken, and says what it should", async () => {
  for (const { text, id, models } of Object.values(CAMPAIGNS)) {
    const campaign = await readCampaign(text, id);
    for (const each of models) {
      const model = await checkModel(campaign, each, 0);
      assert.deepEqual(model, JSON.parse(each.text));
    }
  }
});

for (const { why, least, ...each } of GIVEN.refused) {
  test(`a model is refused because ${why}`, async () => {
    const { text, id } = CAMPAIGNS.linucb;
    const campaign = await readCampaign(text, id);
    await assert.rejects(checkModel(campaign, each, least), (error) => /^model.* so nothing was sent/.test(error.message));
  });
}

test("normal numbers are those of scipy", () => {
  const drawn = standardNormals(new BytesForTestsOnly(fromHex(GIVEN.normals.bytes)), GIVEN.normals.drawn.length);
  drawn.forEach((each, place) => assert.ok(Math.abs(each - GIVEN.normals.drawn[place]) < 1e-13 * (1 + Math.abs(each))));
  for (const [probability, quantile] of GIVEN.quantiles) {
    assert.ok(Math.abs(normalQuantile(probability) - quantile) <= 1e-13 * (1 + Math.abs(quantile)), `${probability}`);
  }
});

test("what is chosen, made into a vector and sent is the same from the same bytes", async () => {
  for (const road of GIVEN.roads) {
    const { text, id, models } = CAMPAIGNS[road.campaign];
    const campaign = await readCampaign(text, id);
    const found = models.map((each) => JSON.parse(each.text)).find(({ number }) => number === road.number);
    const task = campaign.round(found.round.number, found.round.seating);
    const source = new BytesForTestsOnly(fromHex(road.bytes));
    let value = road.value;
    if (found.step.name === "choose") {
      const features = offeredFeatures(road.context, road.offers, campaign.joint);
      const offer = chosenOffer(source, found.step.parameters.model, features);
      assert.equal(offer, road.offer);
      assert.equal(source.used, road.chosen_bytes);
      value = jointVector(features[offer], road.reward);
      value.forEach((each, place) => assert.ok(Math.abs(each - road.vector[place]) < 1e-15));
    }
    const { randomizer, schedule } = task;
    const prepared = randomizer.prepare(source, await randomizer.encode(value), road.position);
    const batches = schedule.batchesOf(road.position).map(({ size, seat, messages }) => {
      assert.equal(messages, randomizer.messages(size));
      return packed(source, randomizer.randomize(source, prepared, size, seat), messages).map(toHex);
    });
    assert.deepEqual(batches, road.batches, road.campaign);
    assert.equal(source.used, road.bytes.length / 2);
  }
});

// --- a device and its servers ---------------------------------------------------------------

const OFFERS = [
  [0.6, 0.8],
  [0, 1],
];

test("a device chooses, reports once, and goes on choosing", async () => {
  const servers = new CampaignServers("linucb");
  const device = await servers.device();
  const choice = await device.choose(undefined, OFFERS);
  assert.deepEqual(Object.keys(choice).sort(), ["model", "offer"]);
  assert.deepEqual(await device.reward(choice, true), { status: "reported", model: 0 });
  assert.equal(servers.puts.length, 1);
  assert.equal(await device.visits(), 1);
  const again = await device.choose(undefined, OFFERS);
  assert.deepEqual(await device.reward(again, 0.5), { status: "took part", model: 0 });
  // Nor by a later model, in a slot where it has not been: a person takes part once.
  servers.newest = 1;
  const later = await device.choose(undefined, OFFERS);
  assert.deepEqual(await device.reward(later, 0.5), { status: "took part", model: 2 });
  assert.equal(servers.puts.length, 1);
  assert.equal(servers.seats, 1);
});

test("whoever serves models is told no token, and only the model's own tag", async () => {
  const servers = new CampaignServers("linucb");
  const device = await servers.device();
  await device.model();
  await device.model();
  const [first, second] = servers.fetches;
  assert.deepEqual(Object.keys(first.headers), ["Accept"]);
  assert.deepEqual(Object.keys(second.headers).sort(), ["Accept", "If-None-Match"]);
  assert.equal(second.headers["If-None-Match"], `"${CAMPAIGNS.linucb.models[0].signature}"`);
});

test("a visit is remembered by a folder, before anything is sent", async () => {
  const path = await mkdtemp(join(tmpdir(), "visits-"));
  try {
    const broken = (request) => {
      if (request.method === "PUT") throw new TypeError("connection broken");
    };
    const servers = new CampaignServers("linucb", broken);
    const first = await servers.device({ outbox: await fileOutbox(path), patience: 0 });
    const choice = await first.choose(undefined, OFFERS);
    await assert.rejects(first.reward(choice, 1), (error) => error.kind === "unreachable");
    // Another process: it took part, and what waits is sent as it is.
    const calm = new CampaignServers("linucb");
    const second = await calm.device({ outbox: await fileOutbox(path) });
    assert.equal(await second.visits(), 1);
    const other = await second.choose(undefined, OFFERS);
    assert.deepEqual(await second.reward(other, 1), { status: "took part", model: 0 });
    assert.deepEqual(await second.flush(), { reports: 1, new: 1, refused: 0 });
    assert.equal(calm.puts[0].body, servers.puts[0].body);
    assert.equal(calm.seats, 0);
  } finally {
    await rm(path, { recursive: true });
  }
});

test("after seat-gone the visit is the new seat's, and there is one", async () => {
  let times = 0;
  const servers = new CampaignServers("linucb", (request) =>
    request.method === "PUT" && times++ === 0 ? problem(410, "seat-gone") : undefined,
  );
  const device = await servers.device();
  const outcome = await device.reward(await device.choose(undefined, OFFERS), 1);
  assert.equal(outcome.status, "reported");
  assert.equal(await device.visits(), 1);
  assert.equal(servers.seats, 2);
  assert.notEqual(servers.puts[0].body, servers.puts[1].body);
});

for (const kind of ["seats-later", "task-full"]) {
  test(`${kind} is late, and nothing was randomized`, async () => {
    const servers = new CampaignServers("linucb", (request) =>
      request.path.includes("/seats") ? problem(409, kind) : undefined,
    );
    const device = await servers.device();
    const outcome = await device.reward(await device.choose(undefined, OFFERS), 1);
    assert.deepEqual(outcome, { status: "late", model: 0 });
    assert.equal(await device.visits(), 0);
    assert.deepEqual(servers.puts, []);
  });
}

test("a seat in a slot that may not answer by the model is refused", async () => {
  const servers = new CampaignServers("linucb");
  servers.seats = 800;
  const device = await servers.device();
  const choice = await device.choose(undefined, OFFERS);
  await assert.rejects(device.reward(choice, 1), /a slot that may not answer by this model/);
  assert.deepEqual(servers.puts, []);
  assert.equal(await device.visits(), 0);
});

test("no device goes back behind a model that it has seen", async () => {
  const outbox = memoryOutbox();
  const servers = new CampaignServers("linucb");
  servers.newest = 1;
  const first = await servers.device({ outbox });
  assert.equal((await first.model()).number, 2);
  servers.newest = 0;
  const second = await servers.device({ outbox });
  await assert.rejects(second.model(), /number 2 or more/);
});

test("a model that was changed on its way is refused, and nothing is sent", async () => {
  const servers = new CampaignServers("linucb");
  servers.change = (model) => ({ ...model, text: model.text.replace('"radius":', '"radius":1') });
  const device = await servers.device();
  await assert.rejects(device.choose(undefined, OFFERS), /signed by the campaign's analyzer/);
  assert.deepEqual(servers.requests.map(({ method }) => method), ["GET"]);
});

test("offers and rewards that the campaign does not have", async () => {
  const servers = new CampaignServers("linucb");
  const device = await servers.device();
  for (const offers of [undefined, [], [[1]], [[1, 1]], [[NaN, 0]], [["a", 0]], [[1, 0], [2, 0]]]) {
    await assert.rejects(device.choose(undefined, offers), /^ShuffleDPError: offers must/);
  }
  await assert.rejects(device.choose([[1]], [[1, 0]]), /^ShuffleDPError: context must/);
  const choice = await device.choose(undefined, OFFERS);
  for (const reward of [-0.1, 1.1, NaN, "1", null]) await assert.rejects(device.reward(choice, reward), /reward must be/);
  await assert.rejects(device.reward({ offer: 0, model: 0 }, 1), /choice must be/);
  await assert.rejects(device.report(1), /asks devices for choose/);
  assert.deepEqual(servers.requests.filter(({ method }) => method !== "GET"), []);
});

test("features without negative numbers are insisted on where epsilon rests on them", async () => {
  const device = await new CampaignServers("carried").device();
  await assert.rejects(device.choose([0.6, -0.8], [[1]]), /no negative number/);
});

test("arms and statistics are answered, too", async () => {
  const arms = await new CampaignServers("arms").device();
  const choice = await arms.choose();
  assert.equal(choice.offer, 0);
  assert.equal((await arms.reward(choice, 0.5)).status, "reported");
  const statistic = await new CampaignServers("statistic").device();
  assert.equal((await statistic.report(1)).status, "reported");
  await assert.rejects(statistic.choose(), /asks devices for report/);
});

for (const [what, change, words] of [
  ["a learner that sends gradients", (campaign) => (campaign.learner.kind = "fit"), /learner.kind fit is unknown/],
  ["another signing key's length", (campaign) => (campaign.signing_key = "AAAA"), /signing_key must be/],
  ["a layout too few", (campaign) => campaign.routing.layouts.pop(), /a layout for every seating/],
  ["another routing", (campaign) => (campaign.routing.layouts[0].slot_users = 1), /routing must be the plan's/],
  ["no number of visits", (campaign) => (campaign.seatings[0].visits = 0), /whole numbers of visits/],
  ["noise of no width", (campaign) => (campaign.seatings[0].plan.noise.variance = 0), /variance must be/],
  ["a modulus that is not said", (campaign) => delete campaign.seatings[0].plan.modulus_bits, /modulus_bits must be/],
]) {
  test(`a campaign with ${what}`, async () => {
    const document = JSON.parse(CAMPAIGNS.linucb.text);
    change(document);
    const campaign = JSON.stringify(document);
    const campaignId = createHash("sha256").update(campaign).digest("hex");
    const asked = { campaignId, campaign, shuffler: "http://127.0.0.1:1", analyzer: "http://127.0.0.1:1", token: "t" };
    await assert.rejects(Device.open(asked), (error) => words.test(error.message) && /so nothing was sent/.test(error.message));
  });
}
