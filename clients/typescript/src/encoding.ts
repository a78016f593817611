/** By encoding, the length of every text (1: as short as possible), and the alphabet. */
const encodings = {
  decimal: [1, "0123456789"],
  hex: [16, "0123456789abcdef"],
  base32: [13, "0123456789ABCDEFGHJKMNPQRSTVWXYZ"], // https://www.crockford.com/base32.html
  base58: [1, "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"], // Bitcoin's
  base62: [11, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"],
  checked: [1, "0123456789"], // then a hyphen and two check digits, by ISO 7064 MOD 97-10
} as const;

/** An encoding of IDs: each ID has exactly one text. Those of hex, base32 and base62 sort like the numbers. */
export type Encoding = keyof typeof encodings;

export const isEncoding = (form: string): form is Encoding => form in encodings;

/** The greatest ID. */
export const MAX_ID = 2n ** 63n - 1n;

const lossy = "a floating-point number, whose last digits may be lost";

/** Throws a TypeError unless an ID is a bigint: programs without types pass numbers, which do not hold one. */
export function checkWhole(id: bigint): void {
  if (typeof id === "bigint") return;
  const wrong = typeof id === "number" ? lossy : `of type ${typeof id}`;
  throw new TypeError(`${String(id).slice(0, 40)} is ${wrong}; want a bigint, such as 117465411174400005n`);
}

/** Writes an ID as text. Throws a RangeError unless the ID is 0 to MAX_ID, and a TypeError unless it is a bigint. */
export function encode(id: bigint, encoding: Encoding): string {
  checkWhole(id);
  if (id < 0n || id > MAX_ID) throw new RangeError(`${id} is not an ID; want 0 to ${MAX_ID}`);
  const [length, alphabet] = encodings[encoding];
  const base = BigInt(alphabet.length);
  let text = "";
  for (let rest = id; rest > 0n || text.length < length; rest /= base) text = alphabet[Number(rest % base)] + text;
  return encoding === "checked" ? `${text}-${String(98n - ((id * 100n) % 97n)).padStart(2, "0")}` : text;
}

/** Reads what `encode` has written. Throws a SyntaxError for any other text, such as one in the wrong case. */
export function parse(text: string, encoding: Encoding): bigint {
  const shown = JSON.stringify(text.slice(0, 40));
  if (encoding === "decimal" && /^(?=.*[.e])\d+(\.\d*)?(e[+-]?\d+)?$/i.test(text))
    throw new SyntaxError(`${shown} is ${lossy}; want all digits, such as 117465411174400005`);
  const alphabet: string = encodings[encoding][1];
  const number = encoding === "checked" ? text.replace(/-[0-9]{2}$/, "") : text;
  let id = 0n;
  for (const c of number.slice(0, 20)) id = id * BigInt(alphabet.length) + BigInt(Math.max(alphabet.indexOf(c), 0));
  if (id <= MAX_ID && encode(id, encoding) === text) return id;
  let wanted = `${encode(0n, encoding)} to ${encode(MAX_ID, encoding)}, in ${alphabet}`;
  if (number !== text && `${BigInt.asUintN(63, id)}` === number) wanted = "the text as it was made: wrong check digits";
  throw new SyntaxError(`${shown} is not a ${encoding} ID; want ${wanted}`);
}
