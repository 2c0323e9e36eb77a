// Fetch from an address of this machine, in Node: so that a test can look for where that address turns up.

import { request } from "node:http";

/** What takes fetch's place, over plain HTTP from this address. */
export const fetchFrom = (localAddress) => (url, { method, headers, body, signal }) =>
  new Promise((resolve, reject) => {
    const asked = request(url, { method, headers, localAddress, signal }, (answer) => {
      const parts = [];
      answer.on("data", (part) => parts.push(part));
      answer.on("end", () => resolve(new Response(Buffer.concat(parts), { status: answer.statusCode, headers: answer.headers })));
      answer.on("error", reject);
    });
    asked.on("error", reject);
    asked.end(body);
  });
