import { readScoresMessages, type ScoresMessage } from '../answers.ts';
import { ask } from '../ask.ts';

/** Messages that are looked at, of all publishers together; each has the same part of them. */
const SCORES_SHOWN = 48;
/** More are not asked: each should have the two messages that show whether a score fell. */
const PUBLISHERS_MAX = 24;
/** However many there are, six are asked a minute, and none more often than this. */
const PAUSE_LEAST_MS = 30_000;
const PAUSE_EACH_MS = 10_000;

/** What is asked of one publisher. */
export interface ScoresQuestion {
  readonly publisher: string;
  readonly url: string;
}

/** Each publisher is asked for by itself: one that publishes often hides no other. */
export function scoresQuestions(coreUrl: string, publishers: readonly string[]): ScoresQuestion[] {
  const asked = publishers.slice(0, PUBLISHERS_MAX);
  return asked.map((publisher) => {
    const query = new URLSearchParams({
      msgTypes: 'POST',
      contentTypes: 'net-scoring-scores',
      channels: 'net-scoring',
      pagination: String(Math.floor(SCORES_SHOWN / asked.length)),
      addresses: publisher,
    });
    return { publisher, url: `${coreUrl}/api/v0/messages.json?${query}` };
  });
}

/** How long nothing is asked after all were, in milliseconds. */
export const scoresPauseMs = (questions: readonly ScoresQuestion[]) =>
  Math.max(PAUSE_LEAST_MS, questions.length * PAUSE_EACH_MS);

export const isSigner = ({ publisher }: ScoresQuestion, sender: string | undefined) =>
  sender?.toLowerCase() === publisher.toLowerCase();

/** What all of them published last, newest first. Throws as `ask` does. */
export async function askScores(
  questions: readonly ScoresQuestion[],
  signal: AbortSignal,
): Promise<{ readonly messages: readonly ScoresMessage[] }> {
  const answers = await Promise.all(
    questions.map(async (question) => {
      const { messages } = await ask(question.url, readScoresMessages, signal);
      // A node that does not know the filter leaves it out.
      return messages.filter(({ sender }) => isSigner(question, sender));
    }),
  );
  return { messages: answers.flat().sort((one, other) => other.time - one.time) };
}
