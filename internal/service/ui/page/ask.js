// Calls to the server, with the token if there is one.

const key = "firn.token";
let token = sessionStorage.getItem(key) ?? "";

export const hasToken = () => token !== "";

export function keepToken(text) {
  token = text;
  if (text === "") sessionStorage.removeItem(key);
  else sessionStorage.setItem(key, text);
}

// logIn exchanges the code of a login address, if the page was opened by one, for the secret of the node. It returns why that
// fails, if it does. It removes the code from the address bar, and so from the history, before it uses it.
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

// Refusal is an error that the server returns.
export class Refusal extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

// Nodes of several clusters behind one address show when a cluster answers again after another: the page sees one node, whose
// cluster may have been founded again, but not twice as the same.
let cluster = "";
const former = new Set();
let mixed = "";

// mixture says which clusters answer at this address, if there are several.
export const mixture = () => mixed;

function compare(id) {
  if (!id || id === cluster) return;
  if (cluster !== "") former.add(cluster);
  cluster = id;
  if (mixed !== "" || !former.has(id)) return;
  mixed = `several clusters answer at this address, ${[...former].join(" and ")}, which give the same IDs: have it lead to the nodes of one`;
  dispatchEvent(new Event("mixed"));
}

// ask returns the answer to a call, or throws a Refusal. Paths of the API begin with a slash: they are those of the node, which
// may be below a prefix here, as behind a proxy.
export async function ask(path, options = {}) {
  const headers = token === "" ? {} : { Authorization: `Bearer ${token}` };
  const answer = await fetch(path.replace(/^\//, "../"), { cache: "no-store", credentials: "omit", redirect: "error", headers, ...options });
  compare(answer.headers.get("Firn-Cluster"));
  if (answer.ok) return answer;
  const text = await answer.text();
  let error = { code: "", message: text.trim() || answer.statusText };
  try {
    error = JSON.parse(text).error ?? error;
  } catch {
    // it comes from a proxy
  }
  throw new Refusal(answer.status, error.code, error.message);
}

export const askJSON = async (path, options) => (await ask(path, options)).json();

export const sequencerPath = (name, rest = "") => `/api/v1/sequencers/${encodeURIComponent(name)}${rest}`;
