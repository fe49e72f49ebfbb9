import { type Topic, textOf } from './topic.ts';

/** A run of a program ended. */
export const programExecuted: Topic = {
  name: 'program.executed',
  kind: 'program_executed',
  read: ({ data }) => ({ sender: textOf(data.owner) }),
};
