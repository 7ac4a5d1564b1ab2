(function () {
  'use strict';

  angular.module('notesApp').component('noteCard', {
    bindings: { note: '<', query: '<' },
    templateUrl: 'app/notes/note-card.html',
  });
})();
