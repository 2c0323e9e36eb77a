// Another implementation of Privacy Pass, as an issuer, a client and an origin: a line of JSON is answered by a line.

import { createInterface } from "node:readline";
import { AuthorizationHeader, publicVerif, Token, TOKEN_TYPES, util, WWWAuthenticateHeader } from "@cloudflare/privacypass-ts";

const MODE = publicVerif.BlindRSAMode.PSS;
const KEY = { modulusLength: 2048, publicExponent: Uint8Array.from([1, 0, 1]) };
const bytes = (text) => Uint8Array.from(Buffer.from(text, "hex"));
const hex = (data) => Buffer.from(data).toString("hex");

const pair = await publicVerif.Issuer.generateKey(MODE, KEY);
const issuer = new publicVerif.Issuer(MODE, "peer.example", pair.privateKey, pair.publicKey);
const client = new publicVerif.Client(MODE);

const answers = {
  key: async () => hex(await publicVerif.getPublicKeyBytes(pair.publicKey)),
  issue: async ({ request }) => {
    const read = publicVerif.TokenRequest.deserialize(TOKEN_TYPES.BLIND_RSA, bytes(request));
    return hex((await issuer.issue(read)).serialize());
  },
  request: async ({ header }) => {
    const [{ challenge, tokenKey }] = WWWAuthenticateHeader.parse(header);
    return hex((await client.createTokenRequest(challenge, tokenKey)).serialize());
  },
  finish: async ({ response }) => {
    const token = await client.finalize(client.deserializeTokenResponse(bytes(response)));
    return new AuthorizationHeader(token).toString(true);
  },
  verify: async ({ token, key }) => {
    const spki = util.convertRSASSAPSSToEnc(bytes(key));
    const rsa = { name: "RSA-PSS", hash: "SHA-384" };
    const publicKey = await crypto.subtle.importKey("spki", spki, rsa, true, ["verify"]);
    const read = Token.deserialize(TOKEN_TYPES.BLIND_RSA, bytes(token));
    return String(await new publicVerif.Origin(MODE).verify(read, publicKey));
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { verb, ...given } = JSON.parse(line);
  console.log(await answers[verb](given));
}
