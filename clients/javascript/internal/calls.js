// Requests to a server: patience with what passes, errors that say what it said, and no answer that is too long.

import { unsigned } from "./bits.js";
import { insist, ShuffleDPError } from "./errors.js";

const PASSING = new Set([408, 425, 429, 500, 502, 503, 504]);
const PREFIX = "urn:shuffledp:problem:";
const FIRST_PAUSE = 0.25;
const LONGEST_PAUSE = 20;
const TIMEOUT_SECONDS = 30;
/** No server sends more: a model of 200 features is a third of it. */
const LONGEST_ANSWER = 4 << 20;

/** A server's address without a slash at its end; https unless it is this machine. */
export function checkUrl(text, name) {
  let url;
  try {
    url = new URL(text);
  } catch {
    url = null;
  }
  const plain = url && !url.username && !url.password && !url.search && !url.hash;
  insist(plain && /^https?:$/.test(url.protocol), `${name} must be an address, got ${String(text)}.`);
  const here = ["localhost", "127.0.0.1", "[::1]"].includes(url.hostname);
  insist(here || url.protocol === "https:", `${name} must be https unless it is this machine, got ${text}.`);
  return url.href.replace(/\/+$/, "");
}

/** Of a token that an issuer has signed (RFC 9577, type 2). */
const ISSUED_BYTES = 354;
export const isIssued = (token) => token instanceof Uint8Array;

/** A token that a header can carry: a role's secret, or one that the task's issuer has signed. */
export function checkToken(token, issuer) {
  if (issuer === undefined) {
    insist(typeof token === "string" && /^[\x21-\x7e]+$/.test(token), "token must be one word of ASCII, the token for enrol.");
  } else {
    const words = `token must be a Uint8Array of ${ISSUED_BYTES} bytes that ${issuer.name} has signed for this task`;
    insist(isIssued(token) && token.length === ISSUED_BYTES && token[0] === 0 && token[1] === 2, `${words}.`);
  }
  return token;
}

/** What Authorization says; whoever has a seat that an issuer's token was given for needs to say nothing more. */
function shown(token, path) {
  if (token === undefined) return {};
  if (!isIssued(token)) return { Authorization: `Bearer ${token}` };
  if (!/\/seats(\?|$)/.test(path)) return {};
  const text = btoa(String.fromCharCode(...token)).replaceAll("+", "-").replaceAll("/", "_");
  return { Authorization: `PrivateToken token="${text}"` };
}

const wait = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));

/** How a server is reached, by this machine's own network; without a token where nobody is asked for one. */
export const reaching = (url, token, patience) => ({
  url,
  token,
  patience,
  fetch: globalThis.fetch.bind(globalThis),
  pause: wait,
});

/** What Retry-After says, seconds or a date; 0 where it says nothing. */
function secondsUntil(text) {
  if (!text) return 0;
  const seconds = /^\d+$/.test(text.trim()) ? Number(text) : (Date.parse(text) - Date.now()) / 1000;
  return Math.max(0, seconds || 0);
}

const isObject = (document) => typeof document === "object" && document !== null && !Array.isArray(document);

/** The JSON object of an answer, or null; an answer that is too long is read no further. */
async function objectOf(response) {
  const reader = response.body?.getReader();
  if (reader === undefined) return null;
  const parts = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > LONGEST_ANSWER) {
      await reader.cancel().catch(() => {});
      return null;
    }
    parts.push(value);
  }
  try {
    const document = JSON.parse(await new Blob(parts).text());
    return isObject(document) ? document : null;
  } catch {
    return null;
  }
}

// A browser does not tell a page which of the two it was.
const ORIGIN = globalThis.document === undefined ? "" : ", or does not let this page's origin in (--allow-origin)";

/** Ask until the server answers for good, or patience ends. `read` answers undefined for what no server sends. */
export async function ask({ url, token, bits, patience, fetch, pause, through }, method, path, read, body, more = {}) {
  const whom = through === undefined ? url : `${url} (through the relay ${through.relay})`;
  const started = Date.now();
  for (let tries = 0; ; ) {
    let [why, retryAfter] = ["", 0];
    try {
      const headers = { Accept: "application/json", ...more, ...shown(token, path) };
      if (body !== undefined) headers["Content-Type"] = "application/octet-stream";
      // No cookies, no referrer, no redirects: they would link or carry on what is sent.
      const rules = { credentials: "omit", redirect: "error", cache: "no-store", referrerPolicy: "no-referrer" };
      const signal = AbortSignal.timeout(1000 * TIMEOUT_SECONDS);
      const response = await fetch(url + path, { method, headers, body, signal, ...rules });
      const answer = response.status === 304 ? {} : await objectOf(response);
      if (response.ok || response.status === 304) {
        const found = answer === null ? undefined : read(response.status, answer, response.headers);
        if (found !== undefined) return found;
        why = `${whom} does not answer as a server of shuffledp does`;
      } else {
        const problem = answer ?? {};
        const kind = String(problem.type ?? "").startsWith(PREFIX) ? problem.type.slice(PREFIX.length) : "unknown";
        const detail = String(problem.detail || "the server gives no reason").replace(/\.$/, "");
        const words = `${detail} (${response.status} ${kind})`;
        if (!PASSING.has(response.status)) throw new ShuffleDPError(`${words}.`, { kind, status: response.status });
        why = `${whom} answers: ${words}`;
        retryAfter = secondsUntil(response.headers.get("retry-after"));
      }
    } catch (cause) {
      if (cause instanceof ShuffleDPError) throw cause;
      why = `${whom} cannot be reached (${cause?.cause?.code ?? cause?.name})${ORIGIN}`;
    }
    // Full jitter: devices that failed together do not come back together.
    const ceiling = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** Math.min(tries++, 16));
    const seconds = Math.max((ceiling * unsigned(bits, 1, 4)[0]) / 2 ** 32, retryAfter);
    if ((Date.now() - started) / 1000 + seconds > patience) {
      throw new ShuffleDPError(`${why}, tried ${tries} times: try again later.`, { kind: "unreachable" });
    }
    await pause(seconds);
  }
}
