const startMs = performance.now();

/** A line, with the seconds since the scenario began. */
export const say = (text: string): void =>
  console.log(`${((performance.now() - startMs) / 1_000).toFixed(1).padStart(6)} s  ${text}`);
