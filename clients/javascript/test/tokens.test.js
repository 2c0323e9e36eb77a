// Tokens of an issuer: shown for a seat, and with no other request, as whoever has the seat needs to say nothing more.

import assert from "node:assert/strict";
import { test } from "node:test";
import { SecureBits } from "../internal/bits.js";
import { ask, checkToken } from "../internal/calls.js";

const ISSUER = { token_type: 2, name: "issuer.example", token_key: "AAAA" };
const TOKEN = Uint8Array.from({ length: 354 }, (_, place) => (place < 2 ? 2 * place : 251 - (place % 200)));

async function headersOf(token, method, path) {
  let sent;
  const fetch = async (_, { headers }) => {
    sent = headers;
    return new Response("{}", { status: 200 });
  };
  const calls = { url: "http://127.0.0.1:1", token, bits: new SecureBits(), patience: 1, fetch, pause: async () => {} };
  await ask(calls, method, path, () => true, method === "PUT" ? new Uint8Array(1) : undefined);
  return sent;
}

test("a token is shown for a seat, as RFC 9577 writes it", async () => {
  const { Authorization } = await headersOf(checkToken(TOKEN, ISSUER), "POST", "/v1/tasks/t/seats?count=1");
  assert.equal(Authorization, `PrivateToken token="${Buffer.from(TOKEN).toString("base64url")}"`);
});

test("a report says nothing of the token", async () => {
  const headers = await headersOf(checkToken(TOKEN, ISSUER), "PUT", "/v1/tasks/t/reports/r");
  assert.deepEqual(Object.keys(headers).sort(), ["Accept", "Content-Type"]);
});

test("a role's secret is shown with every request", async () => {
  for (const path of ["/v1/tasks/t/seats?count=1", "/v1/tasks/t/reports/r"]) {
    assert.equal((await headersOf(checkToken("word"), "POST", path)).Authorization, "Bearer word");
  }
});

for (const [what, token, issuer] of [
  ["a role's secret where an issuer's token is needed", "word", ISSUER],
  ["an issuer's token where a role's secret is needed", TOKEN, undefined],
  ["a token without its end", TOKEN.slice(1), ISSUER],
  ["a token of another type", TOKEN.map((byte, place) => (place === 1 ? 1 : byte)), ISSUER],
]) {
  test(`${what} is refused`, () => assert.throws(() => checkToken(token, issuer), /token must be/));
}
