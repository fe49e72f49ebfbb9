export interface Subject {
  readonly name: string;
  /** How many one run counts for, one where left out. */
  readonly count?: number;
  run(): void;
}

const ROUNDS = 9;
const ROUND_MS = 200;

const median = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

/** Runs of one subject per second of CPU time of this process, over about ROUND_MS. */
function measure(subject: Subject): number {
  const before = process.cpuUsage();
  const endMs = performance.now() + ROUND_MS;
  let runs = 0;
  while (performance.now() < endMs) {
    subject.run();
    runs += subject.count ?? 1;
  }
  const { user, system } = process.cpuUsage(before);
  return (runs * 1e6) / (user + system);
}

/**
 * Measures subjects in turn, in another order each round, and prints each one's median rate and its ratio to the first,
 * taken within each round: what disturbs the machine disturbs both.
 */
export function compare(title: string, subjects: readonly Subject[]): void {
  const rates = subjects.map((): number[] => []);
  for (const subject of subjects) measure(subject);
  for (let round = 0; round < ROUNDS; round++) {
    for (let i = 0; i < subjects.length; i++) {
      const index = (i + round) % subjects.length;
      rates[index]!.push(measure(subjects[index]!));
    }
  }
  console.log(
    `\n${title}: per second of CPU time, median of ${ROUNDS} rounds; ratio to "${subjects[0]!.name}" within a round`,
  );
  subjects.forEach(({ name }, index) => {
    const ratios = rates[index]!.map((rate, round) => rate / rates[0]![round]!);
    const range = `${Math.min(...ratios).toFixed(2)}..${Math.max(...ratios).toFixed(2)}`;
    console.log(
      `${name.padEnd(48)} ${median(rates[index]!).toFixed(0).padStart(9)}/s  ${median(ratios).toFixed(2).padStart(7)}x  [${range}]`,
    );
  });
}
