// Keys: one handler for the page. What is typed into a field stays there.

const GO = { o: '#/', p: '#/k/v1%2Fpods', d: '#/k/apps%2Fv1%2Fdeployments', s: '#/k/v1%2Fservices', n: '#/k/v1%2Fnodes', e: '#/k/v1%2Fevents', c: '#/k/v1%2Fconfigmaps', m: '#/mind', a: '#/access' };

export function listen(app) {
  let pending = 0;
  addEventListener('keydown', (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') { event.preventDefault(); app.palette.open(); return; }
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
    const typing = event.target.closest?.('input:not([type=checkbox]):not([type=range]), textarea, select, .terminal');
    if (typing) return;
    if (pending > performance.now() && GO[event.key]) { pending = 0; event.preventDefault(); location.hash = GO[event.key]; return; }
    pending = 0;
    if (event.key === 'g') { pending = performance.now() + 1500; return; }
    if (event.key === '?') { event.preventDefault(); app.help.showModal(); return; }
    if (event.key === 't') { event.preventDefault(); app.time.toggle(); return; }
    if (event.key === 'Escape') { if (app.view?.back) location.hash = app.view.back; return; }
    if (event.target.closest?.('[role=tab], input[type=range]') && event.key.startsWith('Arrow')) return;
    if (event.key === 'Enter' && event.target.closest?.('a, button')) return;
    const act = app.view?.keys?.[event.key];
    if (act) { event.preventDefault(); act(); }
  });
}
