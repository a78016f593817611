// Asking the server, with the token that was given, if one was.

const key = "firn.token";
let token = sessionStorage.getItem(key) ?? "";

export const hasToken = () => token !== "";

export function keepToken(text) {
  token = text;
  if (text === "") sessionStorage.removeItem(key);
  else sessionStorage.setItem(key, text);
}

// logIn exchanges the code of a login address for the secret of the node, if the page was opened by one. It tells why that
// is not possible, if it is not. The code is gone from the address bar before it is used, and so from the history.
export async function logIn() {
  const code = /^#login=(.*)$/.exec(location.hash)?.[1];
  if (code === undefined) return "";
  history.replaceState(null, "", location.pathname + location.search);
  try {
    keepToken((await askJSON("login", { method: "POST", body: JSON.stringify({ code }) })).token);
    return "";
  } catch (error) {
    return error instanceof Refusal ? error.message : "no answer from the server";
  }
}

// Refusal is what the server says instead of an answer.
export class Refusal extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

// ask returns the answer to a call, and throws a Refusal when there is none.
export async function ask(path, options = {}) {
  const headers = token === "" ? {} : { Authorization: `Bearer ${token}` };
  const answer = await fetch(path, { cache: "no-store", credentials: "omit", redirect: "error", headers, ...options });
  if (answer.ok) return answer;
  const text = await answer.text();
  let error = { code: "", message: text.trim() || answer.statusText };
  try {
    error = JSON.parse(text).error ?? error;
  } catch {
    // it comes from something in between
  }
  throw new Refusal(answer.status, error.code, error.message);
}

export const askJSON = async (path, options) => (await ask(path, options)).json();

export const sequencerPath = (name, rest = "") => `/api/v1/sequencers/${encodeURIComponent(name)}${rest}`;
