import { TsDataPlane } from '../../services/gateway/src/dataplane/ts/plane.ts';
import { benchRoutes, planeOptions } from './subjects.ts';

const plane = new TsDataPlane(planeOptions(Number(process.argv[2])));
plane.replaceTable(benchRoutes());
await plane.listen();
