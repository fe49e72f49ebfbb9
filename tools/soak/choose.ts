/** Of `services/gateway/src/http3.soak.test.ts`: `http3`. */
const nameOf = (path: string) => path.slice(path.lastIndexOf('/') + 1).replace(/\..*/, '');

/** What the words of a command choose; all without one. A word that is a whole name stands for it alone, not for what has it as a part. */
export function chooseSoaks(
  words: readonly string[],
  fuzzers: readonly string[],
  files: readonly string[],
): { readonly fuzzers: string[]; readonly files: string[] } {
  const all = [...fuzzers, ...files];
  const chosen = words.flatMap((word) => {
    const exact = all.filter((one) => nameOf(one) === word);
    return exact.length > 0 ? exact : all.filter((one) => one.includes(word));
  });
  const isChosen = (one: string) => words.length === 0 || chosen.includes(one);
  return { fuzzers: fuzzers.filter(isChosen), files: files.filter(isChosen) };
}
