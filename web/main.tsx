import { render } from 'preact';
import { followCluster } from './live/cluster.ts';
import { keepSession, loadSession } from './live/session.ts';
import { watchVisibility } from './live/shown.ts';
import { reportEnds } from './live/submit.ts';
import { App } from './shell/app.tsx';
import { applyTheme } from './shell/theme.ts';

const RETRY_MS = 2000;

applyTheme();
watchVisibility();
followCluster();
keepSession();
reportEnds();
const place = document.getElementById('app');
if (place !== null) render(<App />, place);
await start();

/** Tries until the node answers, since it may be restarting. */
async function start(): Promise<void> {
  for (;;) {
    try {
      await loadSession();
      return;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}
