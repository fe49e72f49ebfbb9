import { AppError } from '@skerry/protocol';
import { saysNothing } from '../reads/says-nothing.ts';
import type { SignedMessageSource } from '../signed-message.ts';
import { type PublishedScores, readLatestScores } from './verify.ts';

/** Why what a publisher published last does not count. */
export interface OddPublication {
  readonly publisher: string;
  readonly error: AppError;
}

/** What publishers published last, in their order. */
export interface LastScores {
  readonly scores: readonly PublishedScores[];
  readonly odd: readonly OddPublication[];
}

/**
 * What each of these publishers published last: they are asked for one by one, so that none hides another, by publishing often or in
 * another form. Throws where the core node cannot be asked.
 */
export async function readLastScores(
  source: SignedMessageSource,
  publishers: readonly string[],
): Promise<LastScores> {
  const scores: PublishedScores[] = [];
  const odd: OddPublication[] = [];
  for (const publisher of publishers) {
    try {
      const last = await readLatestScores(source, publisher);
      if (last) scores.push(last);
    } catch (error) {
      if (!(error instanceof AppError) || saysNothing(error)) throw error;
      odd.push({ publisher, error });
    }
  }
  return { scores, odd };
}
