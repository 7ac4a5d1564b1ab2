(function () {
  'use strict';

  angular.module('notesApp').component('notesPage', {
    templateUrl: 'app/notes/notes-page.html',
    controller: NotesPageController,
  });

  NotesPageController.$inject = ['notesService', 'searchService'];

  function NotesPageController(notesService, searchService) {
    var $ctrl = this;

    $ctrl.notes = [];
    $ctrl.shown = [];
    $ctrl.query = '';
    $ctrl.pinnedOnly = false;

    $ctrl.$onInit = function () {
      notesService.load().then(function (notes) {
        $ctrl.notes = notes.slice().sort(byPinAndTime);
        $ctrl.update();
      });
    };

    $ctrl.update = function () {
      $ctrl.shown = searchService.find($ctrl.notes, $ctrl.query).filter(function (note) {
        return note.pinned || !$ctrl.pinnedOnly;
      });
    };

    $ctrl.clear = function () {
      $ctrl.query = '';
      $ctrl.update();
    };
  }

  function byPinAndTime(one, other) {
    if (one.pinned !== other.pinned) return one.pinned ? -1 : 1;
    return Date.parse(other.updated) - Date.parse(one.updated);
  }
})();
