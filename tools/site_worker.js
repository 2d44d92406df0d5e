/* Workers for pages that are opened as files, where browsers allow none: the script runs in a hidden frame. The site's search needs it. */
"use strict";
if (location.protocol === "file:") {
    window.IFrameWorker = class extends EventTarget {
        constructor(url) {
            super();
            this.frame = document.createElement("iframe");
            this.frame.hidden = true;
            document.body.appendChild(this.frame);
            const inside = this.frame.contentWindow, page = inside.document;
            page.open();
            page.write("<!doctype html><body></body>");
            page.close();
            inside.IFrameWorker = window.IFrameWorker;
            inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }));
            const load = src => new Promise((loaded, failed) => {
                const script = page.createElement("script");
                script.src = src;
                script.onload = loaded;
                script.onerror = () => failed(new Error(src));
                page.body.appendChild(script);
            });
            inside.importScripts = (...list) => list.reduce((before, src) => before.then(() => load(src)), Promise.resolve());
            this.ready = load(String(url));
        }
        postMessage(data) {
            this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
        }
        terminate() { this.frame.remove(); }
    };
    window.Worker = window.IFrameWorker;
}
