import { COMPUTE_API } from '@skerry/protocol/api/compute/index';
import { CORE_API } from '@skerry/protocol/api/core/index';
import type { Api, Operation } from '@skerry/protocol/api/operation';
import { DEPLOYED_COMPUTE, DEPLOYED_CORE, type DeployedRoute } from './routes.ts';

/** The page that says, route by route, what becomes of a call that was made for the deployed network. */

/** Names in a path are nobody's business but the server's. */
const normalise = (route: string) => route.replace(/:[A-Za-z_]+|\{[^}]*\}|\*$/g, '{}');

/** The routes of deployed nodes that an operation answers. */
const routesOf = ({ method, path, deployed }: Operation) => normalise(deployed?.route ?? `${method} ${path}`);

export interface Answered {
  readonly route: string;
  readonly isAnswered: boolean;
  /** What differs, or why it is not answered. */
  readonly note: string;
}

/** What becomes of each route, in the order of the list. */
export function compareRoutes(routes: readonly DeployedRoute[], api: Api): Answered[] {
  const operations = new Map(Object.values(api).map((operation) => [routesOf(operation), operation]));
  return routes.map(({ route, absent }) => {
    const operation = operations.get(route);
    const note = operation ? (operation.deployed?.differs ?? '') : (absent ?? '');
    return { route, isAnswered: operation !== undefined, note };
  });
}

/** What the lists and the contract say about each other that cannot be. */
export function findContradictions(routes: readonly DeployedRoute[], api: Api): string[] {
  const answered = new Map(compareRoutes(routes, api).map((one) => [one.route, one]));
  const absences = routes.flatMap(({ route, absent }) =>
    answered.get(route)!.isAnswered || absent !== undefined
      ? []
      : [`${route} is not answered, and nothing says why`],
  );
  const claims = Object.entries(api).flatMap(([id, operation]) =>
    operation.deployed && !answered.has(routesOf(operation))
      ? [`${id} claims ${routesOf(operation)}, which deployed nodes do not have`]
      : [],
  );
  return [...absences, ...claims];
}

export const COMPARED: readonly (readonly [routes: readonly DeployedRoute[], api: Api])[] = [
  [DEPLOYED_CORE, CORE_API],
  [DEPLOYED_COMPUTE, COMPUTE_API],
];

const tableOf = (routes: readonly DeployedRoute[], api: Api) =>
  [
    '| route | here | what differs, and why |',
    '|---|---|---|',
    ...compareRoutes(routes, api).map(
      ({ route, isAnswered, note }) =>
        `| \`${route.replaceAll('{}', '…')}\` | ${isAnswered ? 'yes' : 'no'} | ${note} |`,
    ),
  ].join('\n');

export const describeCompatibility = (): string => `# Compatibility

Does an application that was made for the deployed network work here unchanged? Point its client at your own core node
(\`new AlephHttpClient(url)\`, \`ALEPH_API_HOST\`). Every route marked "yes" takes the same parameters and returns the same fields. It may add fields, except where clients refuse unknown
ones.

\`npm run compat\` installs the newest SDK from npm in a folder of its own, starts a network, makes every call that the SDK offers, and prints which of them work (\`--help\`).
It leaves out \`@aleph-sdk/superfluid\`, which talks to public chains and to no node. A call that only the newer SDK in its repository has, and not the one on npm, is "not offered".
\`npm run generate\` writes this page from the contract in \`packages/protocol/src/api\` and from the deployed routes in \`tools/compat/routes.ts\`.

## What differs on every route

- **Errors** are JSON, \`{error, status: "error", code}\` ([errors.md](errors.md)), and not text. Clients decide by the HTTP status, which is the same unless the table says otherwise.
- **An unknown parameter** of a list or a message is refused with \`UNKNOWN_FIELD\`, 422 or 400. Deployed nodes ignore it and return everything, which a client mistakes for the filtered list.
- **A date in milliseconds** is refused with \`INVALID_PARAMETERS\`, 422 or 400, which names the unit: dates in parameters are Unix seconds. Deployed nodes answer with an empty list.
- **Requests are counted** per client, and a client that sends too many gets 429 with \`Retry-After\` ([operating.md](operating.md#limits)). The operator sets the rates.
- **An address that no chain has** is refused with \`INVALID_ADDRESS\`, 422 or 400, where one address is asked for, unless something here names it. Deployed nodes answer as of an empty account.
- **A cursor** is opaque in both networks, and valid only in the one that issued it.
- **Everything is paid by credit.** \`hold\` and \`superfluid\` are accepted in a message and charged as credit ([credit.md](credit.md)); amounts of tokens are zero.
- **A message is answered after the verdict**: \`sync\` is accepted but has no effect.

## Core node

${tableOf(DEPLOYED_CORE, CORE_API)}

## Compute node

${tableOf(DEPLOYED_COMPUTE, COMPUTE_API)}
`;
