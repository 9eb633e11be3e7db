import { render } from 'preact';
import { loadSession } from './api/page-session.ts';
import { applyTheme } from './lib/theme.ts';
import { startRouter } from './lib/router.ts';
import { startSampler } from './shell/sampler.ts';
import { Shell } from './shell/shell.tsx';

applyTheme();
startRouter();
render(<Shell />, document.getElementById('page')!);
startSampler();
void loadSession();
