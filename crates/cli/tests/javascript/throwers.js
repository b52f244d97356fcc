function boom() {
  throw new Error("boom");
}

const bad = { toString: boom, valueOf: boom };

const throwers = {
  forEach: () => [1, 2].forEach(boom),
  map: () => [1, 2].map(boom),
  filter: () => [1, 2].filter(boom),
  some: () => [1, 2].some(boom),
  every: () => [1, 2].every(boom),
  reduce: () => [1, 2].reduce(boom),
  reduceRight: () => [1, 2].reduceRight(boom),
  find: () => [1].find(boom),
  findIndex: () => [1].findIndex(boom),
  sort: () => [2, 1, 3].sort(boom),
  sortByText: () => [bad, 1].sort(),
  sortByNumber: () => [1, 2].sort(() => bad),
  replace: () => "aa".replace("a", boom),
  replaceAll: () => "aa".replaceAll("a", boom),
  replaceByPattern: () => "aa".replace(/a/g, boom),
  replaceByBad: () => "aa".replace("a", () => bad),
  repeat: () => "a".repeat(bad),
  pad: () => "a".padStart(bad),
  join: () => [bad].join(),
  abs: () => Math.abs(bad),
  sqrt: () => Math.sqrt(bad),
  max: () => Math.max(1, bad),
  plus: () => bad + 1,
  less: () => bad < 1,
  key: () => ({})[bad],
  template: () => `${bad}`,
  fromCharCode: () => String.fromCharCode(bad),
  stringify: () => JSON.stringify({ get x() { return boom(); } }),
  assign: () => Object.assign({}, { get x() { return boom(); } }),
};

/** The names of what doesn't throw as it should. */
export function silent() {
  return Object.keys(throwers).filter(name => {
    try {
      throwers[name]();
    } catch (error) {
      return error.message !== "boom";
    }
    return true;
  });
}

/** How often an order is asked for after the first failure. */
export function after() {
  let asked = 0;
  try {
    [5, 3, 9, 1].sort(() => { asked++; throw null; });
  } catch (error) {
    return [asked, error];
  }
}

/** Calls itself until memory ends, and goes on with what the calls took. */
export function recovers() {
  function deeper() {
    return 1 + deeper();
  }
  try {
    deeper();
  } catch (error) {
    return "caught " + error.name + ": " + error.message;
  }
}
