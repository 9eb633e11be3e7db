import { describeRoutingSandbox } from '../../contract/routing-sandbox.contract.ts';
import { quickJsSandbox } from './sandbox-for-tests.ts';

describeRoutingSandbox('QuickJS in worker threads', () => quickJsSandbox());
