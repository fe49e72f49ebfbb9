import { AppError } from '@skerry/protocol/forms';

/** The argument of a daemon that loads its code while its parent does not know its settings yet. */
export const AWAIT_SETTINGS = '--await-settings';

/** What the parent then says, by the channel between the two. */
export interface SettingsWord {
  readonly settings: Readonly<Record<string, string>>;
}

const isSettingsWord = (word: unknown): word is SettingsWord =>
  typeof word === 'object' && word !== null && 'settings' in word;

/**
 * Resolves with the settings that the parent says, as variables. A word that comes before anyone waits for it is kept by Node.
 *
 * @throws AppError SHUTTING_DOWN (the parent has gone), INVALID_CONFIG (there is none)
 */
export async function awaitSettings(): Promise<SettingsWord['settings']> {
  if (process.channel === undefined)
    throw new AppError('INVALID_CONFIG', `${AWAIT_SETTINGS} is for a daemon that another process starts`);
  const { promise, resolve, reject } = Promise.withResolvers<SettingsWord['settings']>();
  const onWord = (word: unknown) => {
    if (isSettingsWord(word)) resolve(word.settings);
  };
  const onGone = () => reject(new AppError('SHUTTING_DOWN', 'the parent process has exited'));
  process.on('message', onWord);
  process.once('disconnect', onGone);
  if (!process.connected) onGone();
  try {
    return await promise;
  } finally {
    process.off('message', onWord);
    process.off('disconnect', onGone);
  }
}
