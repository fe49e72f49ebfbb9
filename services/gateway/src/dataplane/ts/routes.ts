import type { Route, RouteChange } from '../port.ts';

/** Host name to address, as the data plane looks it up once for each connection or request. */
export type RouteTable = Map<string, string>;

export function replaceRoutes(table: RouteTable, routes: Iterable<Route>): void {
  table.clear();
  for (const { hostname, ipv6 } of routes) table.set(hostname, ipv6);
}

export function applyRouteChanges(table: RouteTable, changes: Iterable<RouteChange>): void {
  for (const { hostname, ipv6 } of changes) {
    if (ipv6 === null) table.delete(hostname);
    else table.set(hostname, ipv6);
  }
}
