import type { Goal } from './figure.ts';
import type { Figures } from './figures.ts';

export interface Subject {
  readonly name: string;
  /** How many one run counts for, one where left out. */
  readonly count?: number;
  readonly goal?: Goal;
  run(): void;
}

const ROUNDS = 9;
const ROUND_MS = 200;

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
 * Measures subjects in turn, in another order each round. A figure is how often one runs per second of CPU time, and its
 * ratio to the first one, taken within each round: what disturbs the machine disturbs both.
 */
export function compare(figures: Figures, title: string, subjects: readonly Subject[]): void {
  const rates = subjects.map((): number[] => []);
  for (const subject of subjects) measure(subject);
  for (let round = 0; round < ROUNDS; round++) {
    for (let i = 0; i < subjects.length; i++) {
      const index = (i + round) % subjects.length;
      rates[index]!.push(measure(subjects[index]!));
    }
  }
  figures.group(`${title}, per second of CPU time`);
  subjects.forEach(({ name, goal }, index) => {
    const values = rates[index]!.map((rate, round) => rate / rates[0]![round]!);
    const ratio = index === 0 ? undefined : { to: subjects[0]!.name, values };
    figures.add(name, '/s', rates[index]!, { ratio, goal });
  });
}
