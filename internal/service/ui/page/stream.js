// The stream of events from the server, and the connection for it.

import { ask, Refusal } from "./ask.js";

const silence = 6000; // it beats once a second
const longest = 10000; // between attempts

// events reads server-sent events.
async function* events(body, heard) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    heard();
    rest += value;
    let end;
    while ((end = rest.indexOf("\n\n")) >= 0) {
      const event = { type: "message", data: "" };
      for (const line of rest.slice(0, end).split("\n")) {
        if (line.startsWith("event: ")) event.type = line.slice(7);
        else if (line.startsWith("data: ")) event.data += line.slice(6);
      }
      rest = rest.slice(end + 2);
      yield event;
    }
  }
}

// follow reports views, beats, the state of the connection and refusals, until it is stopped.
export function follow({ view, beat, state, refused }) {
  let stopped = false;
  let wake = () => {};
  let control;

  async function run() {
    for (let failures = 0; !stopped; ) {
      control = new AbortController();
      let timer;
      const heard = () => {
        clearTimeout(timer);
        timer = setTimeout(() => control.abort(), silence);
      };
      let why = "the server closed it";
      try {
        heard();
        const answer = await ask("stream", { signal: control.signal });
        for await (const event of events(answer.body, heard)) {
          const data = JSON.parse(event.data);
          if (event.type === "view") view(data);
          else if (event.type === "beat") beat(data);
          else if (event.type === "end") throw new Refusal(0, data.error.code, data.error.message);
          if (failures !== -1) state({ live: true });
          failures = -1;
        }
      } catch (error) {
        if (error instanceof Refusal && ["unauthenticated", "forbidden", "rate_limited"].includes(error.code)) {
          clearTimeout(timer);
          if (!stopped) refused(error);
          return;
        }
        why = error instanceof Refusal ? error.message : "no answer from the server";
      }
      clearTimeout(timer);
      control.abort();
      if (stopped) return;
      failures = Math.max(failures, 0) + 1;
      const wait = Math.min(longest, 400 * 2 ** failures) * (0.75 + Math.random() / 2);
      state({ live: false, why, again: Date.now() + wait });
      await new Promise((resolve) => {
        wake = resolve;
        setTimeout(resolve, wait);
      });
    }
  }

  const now = () => document.hidden || wake();
  addEventListener("online", now);
  document.addEventListener("visibilitychange", now);
  run();
  return () => {
    stopped = true;
    removeEventListener("online", now);
    document.removeEventListener("visibilitychange", now);
    control?.abort();
    wake();
  };
}
