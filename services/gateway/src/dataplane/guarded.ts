import type { DataPlaneOptions } from './port.ts';
import { Faults } from './ts/faults.ts';

/** For a person whose request cannot be explained. */
const UNEXPLAINED = {
  code: 'INTERNAL',
  message: 'The gateway met a fault of its own; its log has more.',
} as const;

/**
 * The same options, whose callbacks never throw: the planes call them in the middle of a socket's events, where a fault would end
 * the process and leave what is counted of the connection uncounted. One that fails is told of by `onTrouble`.
 */
export function guarded<Options extends DataPlaneOptions>(options: Options): Options {
  const { access, onRefused, explain, onTrouble } = options;
  const faults = new Faults(
    onTrouble,
    'telling of a connection met a fault: it is told of nowhere, and goes on',
  );
  const attempted =
    <One>(tell: (one: One) => void) =>
    (one: One) =>
      faults.attempt(tell, one);
  return {
    ...options,
    explain: (...asked) => {
      try {
        return explain(...asked);
      } catch (error) {
        faults.tell(error);
        return UNEXPLAINED;
      }
    },
    ...(onRefused && { onRefused: attempted(onRefused) }),
    ...(access && {
      access: {
        ...access,
        tell: attempted(access.tell),
        ...(access.tellHttp && { tellHttp: attempted(access.tellHttp) }),
      },
    }),
  };
}
