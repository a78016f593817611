// nextID returns an ID as a string. In the answer's "id" it is a number, of which JavaScript has lost digits already.
export async function nextID() {
  const answer = await fetch(`${process.env.FIRN_URL}/api/v1/id`, { method: 'POST' });
  if (!answer.ok) throw new Error(`no ID: ${answer.status} ${await answer.text()}`);
  return (await answer.json()).id_str;
}

export const pause = (ms) => new Promise((done) => setTimeout(done, ms));

export const show = (what, orders) => console.log(`${what}:`, ...orders.map((o) => o.item));
