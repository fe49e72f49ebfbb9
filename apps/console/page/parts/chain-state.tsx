import { count } from '../pure/format.ts';
import { Badge, type Tone } from './basic.tsx';

const STATES: Readonly<Record<string, readonly [Tone, string]>> = {
  live: ['good', 'live'],
  catching_up: ['warn', 'catching up'],
  stalled: ['bad', 'stalled'],
  halted: ['bad', 'halted'],
  not_read: ['bad', 'not read'],
};

export function ChainState({ state }: { readonly state: string }) {
  const [tone, name] = STATES[state] ?? ['plain', state];
  return <Badge tone={tone}>{name}</Badge>;
}

export const block = (number: number | null) => (number === null ? '–' : count(number));
